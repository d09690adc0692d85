/** What is known of one item: a node, a box, an input, or the whole model. */

import { amountText, type Amounts, type Classes } from "./colours";
import { button, make } from "./dom";
import { at, at2, type Finding, type Model, type Weight } from "./model";
import type { Item } from "./scene";
import { count, titleOf } from "./sizes";

export interface PanelActions {
  goTo: (node: number) => void;
  choose: (item: Item) => void;
  toggle: (item: Item) => void;
  openAll: (item: Item) => void;
  markAncestors: (node: number) => void;
  markDescendants: (node: number) => void;
  startPath: (node: number) => void;
  endPath: (node: number) => void;
  markGroup: (nodes: number[]) => void;
  pathStart: () => number | null;
}

const MOST_LINKS = 12;
const MOST_FINDINGS = 100;

export class Panel {
  constructor(
    private readonly model: Model,
    private readonly actions: PanelActions,
  ) {}

  content(item: Item | null, layers: readonly (Amounts | Classes)[]): Node[] {
    if (!item || item.kind === "graph") return [...this.wholeModel(item), ...this.layers(item, layers)];
    if (item.kind === "node") return [...this.node(item), ...this.layers(item, layers)];
    if (item.kind === "box") return [...this.box(item), ...this.layers(item, layers)];
    return item.values.slice(0, MOST_LINKS).flatMap((value) => this.port(item, value));
  }

  private wholeModel(item: Item | null): Node[] {
    const { data } = this.model;
    const graph = item && item.number !== data.main ? this.model.graph(item.number) : null;
    if (graph) {
      return [
        make("h2", {}, graph.label),
        make("p", {}, `${graph.kind}, ${count(at2(this.model.nodesInBox, graph.box), "node")}`),
        ...prose(graph.doc ?? ""),
        ...section("Inputs", this.values(graph.inputs)),
        ...section("Outputs", this.values(graph.outputs)),
      ];
    }
    const main = this.model.graph(data.main);
    const operators = new Map<string, number>();
    for (const node of data.nodes) {
      if (node.graph !== data.main) continue;
      const { name } = at(data.operators, node.op);
      operators.set(name, (operators.get(name) ?? 0) + 1);
    }
    const most = [...operators].sort((a, b) => b[1] - a[1]).slice(0, 30);
    return [
      make("h2", {}, data.model.name),
      make("p", {}, count(at2(this.model.nodesInBox, main.box), "node")),
      ...prose(data.model.doc),
      ...prose(main.doc ?? ""),
      table(data.model.facts),
      ...this.findings(data.findings),
      ...section("Inputs", this.values(main.inputs)),
      ...section("Outputs", this.values(main.outputs)),
      ...section("Operators", [table(most.map(([name, number]) => [name, number.toLocaleString("en")]))]),
    ];
  }

  private box(item: Item): Node[] {
    const box = this.model.box(item.number);
    const words = {
      graph: "graph",
      layer: "layer",
      repeat: "repeated blocks",
      block: "one of equal blocks",
      part: "part of a long list",
    };
    return [
      make("h2", {}, titleOf(item).text),
      make("p", {}, `${words[box.kind]}, ${count(at2(this.model.nodesInBox, item.number), "node")}`),
      this.toggles(item),
      ...this.findings(item.nodes().flatMap((node) => this.model.findingsOfNode.get(node) ?? [])),
    ];
  }

  private toggles(item: Item): HTMLElement {
    const { actions } = this;
    const toggle = button(item.open ? "Close" : "Open", () => {
      actions.toggle(item);
    });
    const all = button("Open everything inside", () => {
      actions.openAll(item);
    });
    return make("p", { class: "buttons" }, toggle, all);
  }

  private node(item: Item): Node[] {
    const number = item.number;
    const node = this.model.node(number);
    const operator = this.model.operator(number);
    const version = operator.version === undefined ? "" : `, since version ${String(operator.version)}`;
    const costs: [string, string][] = [];
    if (node.params) costs.push(["parameters", amountText(node.params, "")]);
    if (node.madds) costs.push(["multiply-adds", node.maddsText ?? amountText(node.madds, "")]);
    return [
      make("h2", {}, operator.name),
      make("p", {}, `${operator.domain}${version}`),
      node.name !== "" && make("p", { class: "name" }, node.name),
      item.canOpen && this.toggles(item),
      this.relations(number),
      ...this.findings(this.model.findingsOfNode.get(number) ?? []),
      ...section("Operands", this.operands(number)),
      ...section("Results", this.results(number)),
      ...section("Attributes", node.attrs ? [table(node.attrs)] : []),
      ...section("Costs", costs.length > 0 ? [table(costs)] : []),
      ...section("Documentation", this.documentation(number)),
      ...section("Metadata", [...prose(node.doc ?? ""), ...(node.meta ? [table(node.meta)] : [])]),
    ].filter((child) => child !== false);
  }

  private relations(node: number): HTMLElement {
    const { actions } = this;
    const start = actions.pathStart();
    const make_ = (label: string, action: (node: number) => void): HTMLButtonElement =>
      button(label, () => {
        action(node);
      });
    const path =
      start === null || start === node
        ? make_("Path from here…", actions.startPath)
        : make_("Path to here", actions.endPath);
    return make(
      "p",
      { class: "buttons" },
      make_("Depends on", actions.markAncestors),
      make_("Needed by", actions.markDescendants),
      path,
    );
  }

  private operands(number: number): Node[] {
    const { in: operands, captures = [] } = this.model.node(number);
    const names = this.model.operator(number).inputs ?? [];
    const lines = operands.map((value, place) =>
      this.value(value, (names[place] ?? names[names.length - 1])?.[0] ?? ""),
    );
    return [...lines.flat(), ...captures.flatMap((value) => this.value(value, "read by a subgraph"))];
  }

  private results(number: number): Node[] {
    const { out } = this.model.node(number);
    const names = this.model.operator(number).outputs ?? [];
    return out.flatMap((value, place) => {
      const line = this.value(value, names[place]?.[0] ?? "", false);
      return value < 0 ? line : [...line, this.readers(value)];
    });
  }

  private readers(value: number): HTMLElement {
    const readers = at(this.model.readers, value);
    const links = readers.slice(0, MOST_LINKS).map((node) => this.link(node));
    const more = readers.length > MOST_LINKS ? ` and ${String(readers.length - MOST_LINKS)} more` : "";
    return make(
      "p",
      { class: "readers" },
      links.length > 0 ? "read by " : "read by no node",
      ...links.flatMap((link, n) => [n > 0 ? ", " : "", link]),
      more,
    );
  }

  private link(node: number): HTMLButtonElement {
    const { name } = this.model.node(node);
    const { name: op } = this.model.operator(node);
    const link = button(
      op,
      () => {
        this.actions.goTo(node);
      },
      { class: "link", title: name },
    );
    return link;
  }

  private value(value: number, formal: string, isRead = true): Node[] {
    if (value < 0) return [make("p", { class: "value" }, make("b", {}, formal), " left out")];
    const producer = isRead ? at2(this.model.producer, value) : -1;
    const weight = this.model.weight(value);
    const type = this.model.type(value);
    return [
      make(
        "p",
        { class: "value" },
        make("b", {}, formal),
        ` ${this.model.valueName(value)}`,
        type && make("code", {}, ` ${type}`),
        producer >= 0 ? " from " : null,
        producer >= 0 ? this.link(producer) : null,
      ),
      ...(weight ? [weightView(weight)] : []),
    ];
  }

  private values(values: readonly number[]): Node[] {
    return values
      .filter((value) => value >= 0)
      .slice(0, 60)
      .flatMap((value) => this.value(value, ""));
  }

  private port(item: Item, value: number): Node[] {
    const readers = at(this.model.readers, value);
    return [
      make("h2", {}, this.model.valueName(value)),
      make("p", {}, `${item.kind} `, make("code", {}, this.model.type(value))),
      ...(readers.length > 0 ? [this.readers(value)] : []),
    ];
  }

  private documentation(number: number): Node[] {
    const operator = this.model.operator(number);
    const attributes = operator.attributes ?? [];
    const list = (title: string, rows: readonly [string, string][]): Node[] =>
      rows.length > 0 ? [make("h4", {}, title), table(rows)] : [];
    return [
      ...prose(operator.summary ?? ""),
      ...(operator.signature ? [make("pre", { tabindex: "0" }, operator.signature)] : []),
      ...list("Inputs", operator.inputs ?? []),
      ...list("Outputs", operator.outputs ?? []),
      ...list("Attributes", attributes),
    ];
  }

  private findings(found: readonly Finding[]): Node[] {
    const lines = found.slice(0, MOST_FINDINGS).map((finding) => {
      const place = finding.node === undefined ? make("span", {}, finding.where) : this.link(finding.node);
      return make(
        "li",
        { class: finding.severity },
        make("b", {}, `${finding.severity} ${finding.rule} `),
        finding.message,
        finding.hint ? ` (${finding.hint})` : "",
        " ",
        place,
      );
    });
    return lines.length > 0
      ? section(`Findings (${found.length.toLocaleString("en")})`, [
          make("ul", { class: "findings" }, ...lines),
        ])
      : [];
  }

  private layers(item: Item | null, layers: readonly (Amounts | Classes)[]): Node[] {
    return layers.flatMap((one) => {
      const { title, notes, lines, groups } = one.layer;
      if (!item || item.kind === "graph")
        return lines.length > 0
          ? section(
              title,
              lines.map((line) => make("p", {}, line)),
            )
          : [];
      const text = one.text(item);
      const said = item.kind === "node" ? (notes[String(item.number)] ?? []) : [];
      const group = item.kind === "node" ? groups.find((nodes) => nodes.includes(item.number)) : undefined;
      const together = group && group.length > 1 ? [this.group(group)] : [];
      if (text === "" || (said.length === 0 && /^0\b/u.test(text)))
        return said.length > 0
          ? section(
              title,
              said.map((line) => make("p", {}, line)),
            )
          : [];
      return section(title, [make("p", {}, text), ...said.map((line) => make("p", {}, line)), ...together]);
    });
  }

  private group(nodes: number[]): HTMLElement {
    const show = button(`Show the ${String(nodes.length)} nodes of this kernel`, () => {
      this.actions.markGroup(nodes);
    });
    return make("p", { class: "buttons" }, show);
  }
}

function section(title: string, content: readonly Node[]): Node[] {
  return content.length > 0 ? [make("h3", {}, title), ...content] : [];
}

function table(rows: readonly (readonly [string, string])[]): HTMLElement {
  return make(
    "table",
    {},
    make(
      "tbody",
      {},
      ...rows.map(([name, text]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, text))),
    ),
  );
}

function prose(text: string): Node[] {
  return text === "" ? [] : text.split(/\n\s*\n/u).map((part) => make("p", {}, part));
}

const SVG = "http://www.w3.org/2000/svg";
const BAR = 7;
const TALL = 48;

function weightView(weight: Weight): HTMLElement {
  if (weight.problem !== undefined) return make("p", { class: "error" }, `cannot be read: ${weight.problem}`);
  const number = (one: number | null | undefined): string =>
    one === null || one === undefined ? "?" : one.toPrecision(4);
  const facts: string[] = [`${weight.size.toLocaleString("en")} elements`];
  if (weight.values !== undefined) facts.push(`values ${weight.values}`);
  else if (weight.min !== undefined)
    facts.push(
      `${number(weight.min)} to ${number(weight.max)}`,
      `mean ${number(weight.mean)}`,
      `deviation ${number(weight.std)}`,
    );
  if (weight.zeros) facts.push(`${weight.zeros.toLocaleString("en")} zeros`);
  if (weight.nans) facts.push(`${weight.nans.toLocaleString("en")} NaN`);
  if (weight.infinities) facts.push(`${weight.infinities.toLocaleString("en")} infinite`);
  if (weight.sampled !== undefined) facts.push(`${weight.sampled.toLocaleString("en")} of them sampled`);
  const found = make(
    "div",
    { class: "weight" },
    weight.histogram ? histogram(weight.histogram, facts.join(", ")) : null,
    make("p", {}, facts.join(", ")),
  );
  const { map } = weight;
  if (map) {
    const show = button("Heat map", () => {
      show.replaceWith(heatMap(map));
    });
    found.append(show);
  }
  return found;
}

const CELL = 7;

/** A picture of some rows and columns: dark for the least elements, light for the largest. */
function heatMap({ rows, columns, cells }: NonNullable<Weight["map"]>): HTMLElement {
  const label = `Heat map of ${String(rows)} rows and ${String(columns)} columns`;
  const canvas = make("canvas", {
    class: "heatmap",
    role: "img",
    "aria-label": label,
    width: String(columns * CELL),
    height: String(rows * CELL),
  });
  const context = canvas.getContext("2d");
  Uint8Array.from(atob(cells), (cell) => cell.charCodeAt(0)).forEach((level, place) => {
    if (!context) return;
    const part = level / 255;
    context.fillStyle = `hsl(${String(250 - 190 * part)} 70% ${String(18 + 62 * part)}%)`;
    context.fillRect((place % columns) * CELL, Math.floor(place / columns) * CELL, CELL, CELL);
  });
  return canvas;
}

function histogram(counts: readonly number[], label: string): Node {
  const most = Math.max(...counts, 1);
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", `0 0 ${String(counts.length * BAR)} ${String(TALL)}`);
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `Histogram: ${label}`);
  drawing.classList.add("histogram");
  counts.forEach((number, place) => {
    const height = number > 0 ? Math.max(1, (number / most) * TALL) : 0;
    const bar = document.createElementNS(SVG, "rect");
    const attributes = { x: place * BAR, y: TALL - height, width: BAR - 1, height };
    for (const [name, value] of Object.entries(attributes)) bar.setAttribute(name, String(value));
    drawing.append(bar);
  });
  return drawing;
}
