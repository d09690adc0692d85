/** The page: reads its data, and connects the graph, the outline, the search, the panel and the keyboard. */

import { Amounts, amountText, Classes, costLayers, NodeSet, themeOf } from "./colours";
import { button, download, make } from "./dom";
import type { Looks } from "./draw";
import { Layouter } from "./layout";
import { listPage, type ModelList } from "./list";
import { Model, type PageData } from "./model";
import { Outline } from "./outline";
import { Panel } from "./panel";
import { HELP, Search } from "./search";
import { Scene, type Item } from "./scene";
import { count, titleOf } from "./sizes";
import { Stage } from "./stage";
import { treemapOf } from "./treemap";
import { watch } from "./watch";

const MOST_RESULTS = 200;
const TYPING = 120; // milliseconds after a key, before the search begins

class Page {
  private readonly root = document.documentElement;
  private readonly scene: Scene;
  private readonly layouter: Layouter;
  private readonly stage: Stage;
  private readonly outline: Outline;
  private readonly panel: Panel;
  private readonly search: Search;
  private readonly layers: (Amounts | Classes)[];
  private readonly looks: Looks;
  private pathStart: number | null = null;

  private readonly searchField = make("input", {
    type: "search",
    placeholder: "Search  /",
    "aria-label": "Search nodes",
    title: HELP,
  });
  private readonly results = make("ul", { class: "results", "aria-label": "Nodes found" });
  private readonly aside = make("aside", { "aria-label": "Details", tabindex: "-1" });
  private readonly said = make("div", { role: "status", class: "said" });
  private readonly legend = make("div", { class: "legend" });
  private readonly overlay = make("div", { class: "overlay", hidden: true });
  private readonly main = make("main", {});

  constructor(private readonly model: Model) {
    const { data } = model;
    this.scene = new Scene(model);
    this.layouter = new Layouter(this.scene);
    this.search = new Search(model);
    this.layers = [
      ...data.layers.map((layer) => this.coloured(layer)),
      ...costLayers(model).map((layer) => new Amounts(model, layer)),
    ];
    const severe = (severity: string): NodeSet =>
      new NodeSet(
        model,
        data.findings.flatMap((f) => (f.severity === severity && f.node !== undefined ? [f.node] : [])),
      );
    this.looks = {
      theme: themeOf(this.root),
      selected: null,
      marked: null,
      amounts: null,
      classes: null,
      errors: severe("error"),
      warnings: severe("warning"),
    };
    const label = `Graph of ${data.model.name}. Arrow keys follow edges, Enter opens, Escape closes, slash searches.`;
    const canvas = make("canvas", { tabindex: "0", role: "application", "aria-label": label });
    this.outline = new Outline(
      this.scene,
      (item) => {
        this.choose(item);
        this.stage.show(item);
      },
      (item) => void this.toggle(item),
    );
    this.panel = new Panel(model, {
      goTo: (node) => void this.goTo(node),
      choose: (item) => {
        this.choose(item);
      },
      toggle: (item) => void this.toggle(item),
      openAll: (item) => void this.openAll(item),
      markAncestors: (node) => {
        this.mark(model.ancestors(node), (number) => `${count(number - 1, "node")} that this one depends on`);
      },
      markDescendants: (node) => {
        this.mark(
          model.descendants(node),
          (number) => `${count(number - 1, "node")} that depend on this one`,
        );
      },
      startPath: (node) => {
        this.pathStart = node;
        this.say("Choose another node, then Path to here.");
        this.choose(this.looks.selected);
      },
      endPath: (node) => {
        this.path(node);
      },
      markGroup: (nodes) => {
        this.mark(nodes, (number) => count(number, "node"));
      },
      pathStart: () => this.pathStart,
    });
    this.main.append(canvas, this.legend, this.overlay);
    document.body.append(this.header(), this.navigation(), this.main, this.aside, this.said);
    this.stage = new Stage(canvas, this.scene, () => this.looks, {
      choose: (item) => {
        this.choose(item);
      },
      toggle: (item) => void this.toggle(item),
      search: () => {
        this.searchField.focus();
      },
      leave: () => {
        this.leave();
      },
    });
    this.listen();
    this.choose(null);
    void this.begin();
  }

  private async begin(): Promise<void> {
    await this.layouter.run();
    this.outline.update();
    this.stage.start();
    const [first] = this.model.data.layers;
    if (first) this.colour(first.name);
    await this.fromAddress();
    this.root.dataset.ready = String(Math.round(performance.now()));
  }

  private coloured(layer: PageData["layers"][number]): Amounts | Classes {
    return layer.classes.length > 0
      ? new Classes(this.model, layer, this.root)
      : new Amounts(this.model, layer);
  }

  // the parts of the page

  private header(): HTMLElement {
    const { data } = this.model;
    const select = make(
      "select",
      { "aria-label": "Colours" },
      make("option", { value: "" }, "Colours: none"),
    );
    for (const { layer } of this.layers) select.append(make("option", { value: layer.name }, layer.title));
    if (data.layers[0]) select.value = data.layers[0].name;
    select.addEventListener("change", () => {
      this.colour(select.value);
    });
    return make(
      "header",
      {},
      make("h1", {}, data.model.name),
      this.searchField,
      select,
      button(
        "Areas",
        () => {
          this.areas();
        },
        { title: "Parts of the model as areas, by the amounts of the chosen colours" },
      ),
      button(
        "Fit",
        () => {
          this.stage.fit();
        },
        { title: "Show the whole graph (0)" },
      ),
      button(
        "−",
        () => {
          this.stage.zoom(0.8);
        },
        { "aria-label": "Smaller" },
      ),
      button(
        "+",
        () => {
          this.stage.zoom(1.25);
        },
        { "aria-label": "Larger" },
      ),
      button(
        "SVG",
        () => {
          this.saveSvg();
        },
        { title: "Save what is open as SVG" },
      ),
      button("PNG", () => void this.savePng(), { title: "Save what is open as PNG" }),
      button(
        "◐",
        () => {
          this.switchTheme();
        },
        { "aria-label": "Light or dark" },
      ),
      button(
        "☰",
        () => {
          document.body.classList.toggle("narrow");
        },
        { "aria-label": "Outline and details" },
      ),
    );
  }

  private navigation(): HTMLElement {
    return make("nav", { "aria-label": "Outline" }, this.results, this.outline.element, this.outline.note);
  }

  private listen(): void {
    let timer = 0;
    this.searchField.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        this.find();
      }, TYPING);
    });
    this.searchField.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.results.querySelector("button")?.click();
      if (event.key === "Escape") {
        this.leave();
        this.stage.canvas.focus();
      }
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key === "/" && !typing && event.target !== this.stage.canvas) {
        event.preventDefault();
        this.searchField.focus();
      } else if (event.key === "Escape" && !typing && event.target !== this.stage.canvas) this.leave();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.repaint();
    });
    addEventListener("beforeprint", () => {
      this.print();
    });
    addEventListener("hashchange", () => void this.fromAddress());
  }

  // what the user does

  private choose(item: Item | null): void {
    this.looks.selected = item;
    const layers = this.layers.filter(
      (one) => one.layer.name !== "parameters" && one.layer.name !== "multiply-adds",
    );
    const shown = item?.kind === "box" ? this.layers : layers;
    this.aside.replaceChildren(...this.panel.content(item, shown));
    this.aside.scrollTop = 0;
    this.outline.select(item);
    if (item) this.say(`${titleOf(item).text} ${titleOf(item).detail}`);
    this.stage.redraw();
  }

  private async toggle(item: Item): Promise<void> {
    if (!item.canOpen || !item.parent) return;
    item.open = !item.open;
    await this.changed(item);
    this.say(item.open ? "opened" : "closed");
  }

  private async openAll(item: Item): Promise<void> {
    if (!this.scene.openAll(item)) this.say("There is too much inside to open all of it.");
    await this.changed(item);
  }

  /** Lay out again after boxes were opened or closed, and leave an item where it is. */
  private async changed(item: Item): Promise<void> {
    const place = this.stage.placeOf(item);
    await this.layouter.run();
    this.outline.update();
    this.stage.keep(item, place);
    if (this.looks.selected && !this.isVisible(this.looks.selected)) this.choose(item);
    else this.choose(this.looks.selected);
  }

  private isVisible(item: Item): boolean {
    for (let box = item.parent; box; box = box.parent) if (!box.open) return false;
    return true;
  }

  private async goTo(node: number): Promise<void> {
    const item = this.scene.reveal(node);
    if (!item) {
      this.say("No call of this function is in the graph.");
      return;
    }
    await this.layouter.run();
    this.outline.update();
    this.choose(item);
    this.stage.show(item);
  }

  private find(): void {
    const found = this.search.find(this.searchField.value);
    const lines = found.slice(0, MOST_RESULTS).map((node) => {
      const { name } = this.model.node(node);
      const go = button("", () => void this.goTo(node));
      go.append(make("b", {}, this.model.operator(node).name), ` ${name}`);
      return make("li", {}, go);
    });
    this.results.replaceChildren(...lines);
    if (this.searchField.value === "") this.unmark();
    else this.mark(found, (number) => `${count(number, "node")} found`);
  }

  private mark(nodes: Iterable<number>, text: (number: number) => string): void {
    const set = new Set(nodes);
    this.looks.marked = new NodeSet(this.model, set);
    this.say(text(set.size));
    this.stage.redraw();
  }

  private unmark(): void {
    this.looks.marked = null;
    this.pathStart = null;
    this.stage.redraw();
  }

  private path(end: number): void {
    const start = this.pathStart;
    if (start === null) return;
    const between = (from: number, to: number): number[] => {
      const after = this.model.descendants(from);
      return [...this.model.ancestors(to)].filter((node) => after.has(node));
    };
    const forward = between(start, end);
    const found = forward.length > 0 ? forward : between(end, start);
    this.pathStart = null;
    if (found.length > 0) this.mark(found, (number) => `${count(number, "node")} on the paths`);
    else this.say("No path leads from one of these nodes to the other.");
    this.choose(this.looks.selected);
  }

  /** Close what is in front: areas, a search, marks, and last the box around the chosen item. */
  private leave(): void {
    if (!this.overlay.hidden) this.overlay.hidden = true;
    else if (this.searchField.value !== "") {
      this.searchField.value = "";
      this.find();
    } else if (this.looks.marked) this.unmark();
    else {
      const box = this.looks.selected?.parent;
      if (!box?.parent) {
        this.choose(null);
        return;
      }
      this.choose(box);
      void this.toggle(box.kind === "graph" ? box.parent : box);
    }
  }

  private colour(name: string): void {
    const found = this.layers.find((one) => one.layer.name === name);
    this.looks.amounts = found instanceof Amounts ? found : null;
    this.looks.classes = found instanceof Classes ? found : null;
    this.legend.replaceChildren(...(found ? this.legendOf(found) : []));
    this.stage.redraw();
  }

  private legendOf(found: Amounts | Classes): Node[] {
    const title = make("b", {}, found.layer.title);
    if (found instanceof Classes) {
      return [
        title,
        ...found.layer.classes.map((name, place) => {
          const swatch = make("span", { class: "swatch" });
          swatch.style.background = found.colours[place] ?? "";
          return make("span", {}, swatch, name);
        }),
      ];
    }
    const scale = make("span", { class: "scale", "aria-hidden": "true" });
    const most = amountText(found.most, found.layer.unit);
    const whole = found.layer.combine === "sum" ? ` a node, ${found.text(this.scene.main)} in all` : "";
    return [title, make("span", {}, "0 ", scale, ` ${most}${whole}`)];
  }

  private areas(): void {
    if (!this.overlay.hidden) {
      this.overlay.hidden = true;
      return;
    }
    const parameters = this.layers.find((one) => one.layer.name === "parameters");
    const amounts = this.looks.amounts ?? (parameters instanceof Amounts ? parameters : null);
    if (!amounts) return;
    const { clientWidth, clientHeight } = this.main;
    const map = treemapOf(
      this.scene.main,
      amounts,
      this.looks,
      clientWidth - 24,
      clientHeight - 70,
      (item) => {
        this.overlay.hidden = true;
        const [node] = item.nodes();
        if (item.kind === "node") void this.goTo(item.number);
        else if (node !== undefined) void this.goToBox(item);
      },
    );
    this.overlay.replaceChildren(map);
    this.overlay.hidden = false;
  }

  private async goToBox(item: Item): Promise<void> {
    for (let box = item.parent; box; box = box.parent) box.open = true;
    await this.layouter.run();
    this.outline.update();
    this.choose(item);
    this.stage.show(item);
  }

  private saveSvg(): void {
    const text = new XMLSerializer().serializeToString(this.stage.svg(this.model.data.model.name));
    download(new Blob([text], { type: "image/svg+xml" }), "graph.svg");
  }

  private async savePng(): Promise<void> {
    const picture = await this.stage.png();
    if (picture) download(picture, "graph.png");
    else this.say("This browser could not make a picture of this size.");
  }

  private switchTheme(): void {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = this.root.dataset.theme ?? (dark ? "dark" : "light");
    this.root.dataset.theme = now === "dark" ? "light" : "dark";
    this.repaint();
  }

  private repaint(): void {
    this.looks.theme = themeOf(this.root);
    this.stage.redraw();
  }

  /** Put a drawing of all that is open in the place of the canvas, light as paper is, until the page is printed. */
  private print(): void {
    const { theme } = this.root.dataset;
    this.root.dataset.theme = "light";
    this.repaint();
    const drawing = this.stage.svg(this.model.data.model.name) as unknown as HTMLElement;
    const printed = make("div", { class: "print" }, drawing);
    this.main.append(printed);
    const restore = (): void => {
      printed.remove();
      if (theme === undefined) delete this.root.dataset.theme;
      else this.root.dataset.theme = theme;
      this.repaint();
    };
    addEventListener("afterprint", restore, { once: true });
  }

  /** `#node=NAME` in the address of the page shows a node. */
  private async fromAddress(): Promise<void> {
    const name = new URLSearchParams(location.hash.slice(1)).get("node");
    if (name === null) return;
    const node = this.model.data.nodes.findIndex(
      (one) =>
        one.name === name || one.out.some((value) => value >= 0 && this.model.valueName(value) === name),
    );
    if (node >= 0) await this.goTo(node);
    else this.say(`There is no node ${name}.`);
  }

  private say(text: string): void {
    this.said.textContent = text;
  }
}

function begin(): void {
  const data: unknown = JSON.parse(document.getElementById("data")?.textContent ?? "null");
  if (isList(data)) {
    document.body.append(listPage(data));
    watch();
    return;
  }
  const page = data as PageData;
  new Page(new Model(page));
  if (page.reload) watch();
}

function isList(data: unknown): data is ModelList {
  return typeof data === "object" && data !== null && "list" in data;
}

begin();
