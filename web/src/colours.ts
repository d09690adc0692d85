/** The colours of the page, from its style, and those that a layer gives to items. */

import { at2, type Layer, type Model } from "./model";
import type { Item } from "./scene";
import { count } from "./sizes";

export interface Theme {
  page: string;
  node: string;
  work: string;
  box: string;
  boxDeep: string;
  border: string;
  text: string;
  quiet: string;
  edge: string;
  accent: string;
  mark: string;
  error: string;
  warning: string;
  heat: string;
}

export function themeOf(element: Element): Theme {
  const style = getComputedStyle(element);
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    page: read("page"),
    node: read("node"),
    work: read("work"),
    box: read("box"),
    boxDeep: read("box-deep"),
    border: read("border"),
    text: read("text"),
    quiet: read("quiet"),
    edge: read("edge"),
    accent: read("accent"),
    mark: read("mark"),
    error: read("error"),
    warning: read("warning"),
    heat: read("heat"),
  };
}

/** Some nodes, with everything that they are in. */
export class NodeSet {
  readonly nodes: Set<number>;
  private readonly boxes = new Set<number>();

  constructor(model: Model, nodes: Iterable<number>) {
    this.nodes = new Set(nodes);
    for (const start of [...this.nodes]) {
      for (let node = start; node >= 0;) {
        this.nodes.add(node);
        let box = at2(model.boxOfNode, node);
        while (box >= 0 && !this.boxes.has(box)) {
          this.boxes.add(box);
          box = at2(model.parentOfBox, box);
        }
        if (box >= 0) break;
        node = at2(model.ownerOfGraph, model.node(node).graph);
      }
    }
  }

  has(item: Item): boolean {
    if (item.kind === "node") return this.nodes.has(item.number);
    return (item.kind === "box" || item.kind === "graph") && this.boxes.has(item.box);
  }
}

/** Classes of a layer, in the order of its list; each is told by its name in the legend too. */
const CLASSES = ["--class-0", "--class-1", "--class-2", "--class-3"];

/** Amounts of items: of a layer of the data, of parameters, or of multiply-adds. */
export class Amounts {
  private readonly boxes: Float64Array;
  readonly most: number;
  readonly total: number;

  constructor(
    private readonly model: Model,
    readonly layer: Layer,
  ) {
    this.boxes = model.totals((node) => this.own(node), layer.combine);
    this.most = Object.values(layer.values).reduce((most, value) => Math.max(most, value), 0);
    this.total = at2(this.boxes, model.graph(model.data.main).box);
  }

  private own(node: number): number {
    return this.layer.values[String(node)] ?? 0;
  }

  of(item: Item): number {
    if (item.kind === "node")
      return this.model.amountOf(item.number, (n) => this.own(n), this.boxes, this.layer.combine);
    return item.kind === "box" || item.kind === "graph" ? at2(this.boxes, item.box) : 0;
  }

  text(item: Item): string {
    return amountText(this.of(item), this.layer.unit);
  }

  /** How strong the colour of an item is, from 0 to 1: of the largest node, or for a box of the whole. */
  strength(item: Item): number {
    const most = this.layer.combine === "sum" && item.kind !== "node" ? this.total : this.most;
    return most > 0 ? Math.sqrt(Math.min(1, this.of(item) / most)) : 0;
  }
}

/** The classes of items: for a box, that of most nodes in it. */
export class Classes {
  readonly colours: string[];
  private readonly boxes: Float64Array[];

  constructor(
    model: Model,
    readonly layer: Layer,
    element: Element,
  ) {
    const style = getComputedStyle(element);
    this.colours = layer.classes.map((_, place) =>
      style.getPropertyValue(CLASSES[place % CLASSES.length] ?? "").trim(),
    );
    this.boxes = layer.classes.map((_, one) => model.totals((node) => this.own(node, one), "sum"));
  }

  private own(node: number, one: number): number {
    return this.layer.values[String(node)] === one ? 1 : 0;
  }

  /** How many nodes of each class an item has. */
  of(item: Item): number[] {
    return this.boxes.map((boxes, one) => {
      if (item.kind === "node")
        return item.model.amountOf(item.number, (node) => this.own(node, one), boxes, "sum");
      return item.kind === "box" || item.kind === "graph" ? at2(boxes, item.box) : 0;
    });
  }

  colour(item: Item): string | null {
    const counts = this.of(item);
    const most = Math.max(...counts);
    return most > 0 ? (this.colours[counts.indexOf(most)] ?? null) : null;
  }

  text(item: Item): string {
    const counts = this.of(item).map((number, one) => [this.layer.classes[one] ?? "", number] as const);
    return counts
      .flatMap(([name, number]) => (number > 0 ? [`${name}: ${count(number, "node")}`] : []))
      .join(", ");
  }
}

const UNITS = ["", " K", " M", " G", " T", " P"];
const SMALL = ["", " m", " µ", " n"];

export function amountText(amount: number, unit: string): string {
  if (amount === 0) return `0 ${unit}`.trim();
  let size = amount;
  let place = 0;
  if (Math.abs(size) < 1 && unit === "s") {
    for (; Math.abs(size) < 1 && place < SMALL.length - 1; place++) size *= 1000;
    return `${size.toPrecision(3)}${SMALL[place] ?? ""}${unit}`;
  }
  for (; Math.abs(size) >= 1000 && place < UNITS.length - 1; place++) size /= 1000;
  const digits = place > 0 || !Number.isInteger(size) ? size.toPrecision(3) : String(size);
  return `${digits}${UNITS[place] ?? ""}${unit && place === 0 ? " " : ""}${unit}`;
}

export function costLayers(model: Model): Layer[] {
  const make = (
    name: string,
    title: string,
    unit: string,
    read: (node: number) => number | undefined,
  ): Layer => {
    const values: Record<string, number> = {};
    model.data.nodes.forEach((_, node) => {
      const amount = read(node);
      if (amount) values[String(node)] = amount;
    });
    return { name, title, unit, combine: "sum", classes: [], values, notes: {}, lines: [], groups: [] };
  };
  const symbolic = model.data.nodes.some((node) => node.maddsText !== undefined);
  const madds = make("multiply-adds", "Multiply-adds", "", (node) => model.node(node).madds);
  if (symbolic) madds.lines.push("Dimension variables count as 1, and unknown sizes as 0.");
  return [make("parameters", "Parameters", "", (node) => model.node(node).params), madds];
}
