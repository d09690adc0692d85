/** The items that the page shows: nodes, boxes, inputs and outputs, each where it is open or closed. */

import { at, at2, Model } from "./model";

export type ItemKind = "node" | "box" | "graph" | "input" | "output";

export interface Edge {
  /** An item inside the box, or null for what comes from outside or leaves it. */
  from: Item | null;
  to: Item | null;
  values: number[];
  /** In the coordinates of the page, after a layout. */
  points: [number, number][];
}

const MOST_PORTS = 12;

export class Item {
  open = false;
  x = 0;
  y = 0;
  width = 0;
  height = 0;
  private inside: Item[] | null = null;
  private links: Edge[] | null = null;

  /** `number` is that of the node, box, graph or value; of several inputs or outputs it is that of the graph. */
  constructor(
    readonly scene: Scene,
    readonly kind: ItemKind,
    readonly number: number,
    readonly parent: Item | null,
    readonly id: number,
    readonly values: number[] = [],
  ) {}

  get model(): Model {
    return this.scene.model;
  }

  /** The box of an item that has one: its own, or that of its graph. */
  get box(): number {
    return this.kind === "graph" ? this.model.graph(this.number).box : this.number;
  }

  get canOpen(): boolean {
    if (this.kind === "node") return this.model.graphsOfNode(this.number).length > 0;
    return this.kind === "box" || this.kind === "graph";
  }

  /** The items inside; they exist from the first time that the item opens. */
  get children(): Item[] {
    this.inside ??= this.contents();
    return this.inside;
  }

  /** The edges among the items inside. */
  get edges(): Edge[] {
    this.links ??= this.kind === "node" ? [] : linked(this);
    return this.links;
  }

  *visible(): Generator<Item> {
    yield this;
    if (this.open) for (const child of this.children) yield* child.visible();
  }

  /** Whether a node is in this item, as far as its own graph goes. */
  contains(node: number): boolean {
    if (this.kind === "node") return this.number === node || this.owns(node);
    if (this.kind === "input" || this.kind === "output") return false;
    return this.model.itemOf(this.box, node) !== undefined;
  }

  /** The nodes in this item. */
  nodes(): number[] {
    if (this.kind === "node") return [this.number];
    return this.kind === "box" || this.kind === "graph" ? this.model.nodesOf(this.box) : [];
  }

  private owns(node: number): boolean {
    const graphs = this.model.graphsOfNode(this.number);
    return graphs.some((graph) => this.model.itemOf(this.model.graph(graph).box, node) !== undefined);
  }

  private contents(): Item[] {
    const make = (kind: ItemKind, number: number, values: number[] = []): Item =>
      new Item(this.scene, kind, number, this, this.scene.nextId++, values);
    if (this.kind === "node") {
      return this.model.graphsOfNode(this.number).map((graph) => {
        const item = make("graph", graph);
        item.open = true;
        return item;
      });
    }
    const items = this.model
      .box(this.box)
      .items.map((item) => (item >= 0 ? make("node", item) : make("box", -1 - item)));
    if (this.kind !== "graph") return items;
    const { inputs, outputs } = this.model.graph(this.number);
    const ports = (kind: "input" | "output", values: number[]): Item[] => {
      const named = values.filter((value) => value >= 0);
      if (named.length > MOST_PORTS) return [make(kind, named[0] ?? 0, named)];
      return [...new Set(named)].map((value) => make(kind, value, [value]));
    };
    return [...ports("input", inputs), ...items, ...ports("output", outputs)];
  }
}

/** The edges among the items of a box: one for each pair of items, with all values that it carries. */
function linked(item: Item): Edge[] {
  const { model } = item;
  const box = item.box;
  const graph = at2(model.graphOfBox, box);
  const byKey = new Map<string, Item>();
  const inputs = new Map<number, Item>();
  const outputs = new Map<number, Item>();
  for (const child of item.children) {
    if (child.kind === "node") byKey.set(String(child.number), child);
    else if (child.kind === "box") byKey.set(String(-1 - child.number), child);
    else for (const value of child.values) (child.kind === "input" ? inputs : outputs).set(value, child);
  }
  const found = new Map<string, Edge>();
  const add = (from: Item | null, to: Item | null, value: number): void => {
    if (from === to) return;
    const key = `${String(from?.id)}>${String(to?.id)}`;
    const edge = found.get(key);
    if (!edge) found.set(key, { from, to, values: [value], points: [] });
    else if (!edge.values.includes(value)) edge.values.push(value);
  };
  const place = (node: number): Item | undefined => {
    const number = model.itemOf(box, node);
    return number === undefined ? undefined : byKey.get(String(number));
  };
  const isOutput = new Set(model.graph(graph).outputs);
  for (const node of model.nodesOf(box)) {
    const here = place(node);
    if (!here) continue;
    for (const value of model.reads(node)) {
      const producer = at2(model.producer, value);
      const source = producer >= 0 ? place(producer) : inputs.get(value);
      if (source) add(source, here, value);
      else if (producer >= 0 || model.weight(value) === undefined) add(null, here, value);
    }
    for (const value of model.node(node).out) {
      if (value < 0) continue;
      const port = outputs.get(value);
      if (port) add(here, port, value);
      const leaves = at(model.readers, value).some(
        (reader) => model.node(reader).graph === graph && !place(reader),
      );
      if (leaves || (isOutput.has(value) && !port)) add(here, null, value);
    }
  }
  for (const [value, port] of outputs) {
    const source = inputs.get(value);
    if (source) add(source, port, value);
    else if (at2(model.producer, value) < 0 && model.weight(value) === undefined) add(null, port, value);
  }
  return [...found.values()];
}

const FIRST_VIEW = 80;
const MOST_OPEN = 4000;

export class Scene {
  readonly roots: Item[];
  nextId = 0;

  constructor(readonly model: Model) {
    const { graphs } = model.data;
    const others = graphs.flatMap(({ kind }, number) =>
      kind === "training" || kind === "beside" ? [number] : [],
    );
    this.roots = [model.data.main, ...others].map(
      (graph) => new Item(this, "graph", graph, null, this.nextId++),
    );
    for (const root of this.roots) {
      root.open = root === this.main || model.graph(root.number).kind === "beside";
      if (root.open) this.openSome(root);
    }
  }

  get main(): Item {
    return at(this.roots, 0);
  }

  *visible(): Generator<Item> {
    for (const root of this.roots) yield* root.visible();
  }

  count(): number {
    let count = 0;
    for (const item of this.visible()) count += item.open ? 0 : 1;
    return count;
  }

  /** Open boxes while the page has room, those of fewest items first, and never repeats or graphs of nodes. */
  private openSome(item: Item): void {
    let room = FIRST_VIEW - item.children.length;
    let level = [item];
    while (level.length > 0) {
      const closed = level
        .flatMap((one) => (one.open ? one.children : []))
        .filter((one) => one.kind === "box" && this.model.box(one.number).kind !== "repeat");
      closed.sort((a, b) => this.model.box(a.number).items.length - this.model.box(b.number).items.length);
      for (const box of closed) {
        const more = this.model.box(box.number).items.length - 1;
        if (more > room) continue;
        box.open = true;
        room -= more;
      }
      level = closed.filter((box) => box.open);
    }
  }

  /** Open everything inside an item; false where that would be more than a page can draw. */
  openAll(item: Item): boolean {
    const pending = [item];
    let left = MOST_OPEN - this.count();
    for (let one = pending.pop(); one; one = pending.pop()) {
      if (!one.canOpen) continue;
      left -= one.open ? 0 : one.children.length;
      if (left < 0) return false;
      one.open = true;
      pending.push(...one.children.filter((child) => child.kind !== "node"));
    }
    return true;
  }

  /** The item of a node, with everything around it open. */
  reveal(node: number, around: ReadonlySet<number> = new Set()): Item | undefined {
    const graph = this.openGraph(this.model.node(node).graph, around);
    return graph && this.descend(graph, node);
  }

  /** Open a graph where it is shown; functions that only call each other are shown nowhere. */
  private openGraph(graph: number, around: ReadonlySet<number>): Item | undefined {
    if (around.has(graph)) return undefined;
    const root = this.roots.find((item) => item.number === graph);
    if (root) {
      root.open = true;
      return root;
    }
    const owner = Math.max(at2(this.model.ownerOfGraph, graph), at2(this.model.callOfGraph, graph));
    const node = owner < 0 ? undefined : this.reveal(owner, new Set([...around, graph]));
    if (!node) return undefined;
    node.open = true;
    const item = node.children.find((child) => child.number === graph);
    if (item) item.open = true;
    return item;
  }

  private descend(item: Item, node: number): Item | undefined {
    item.open = true;
    const child = item.children.find((one) =>
      one.kind === "node" ? one.number === node : one.kind === "box" && one.contains(node),
    );
    return child?.kind === "box" ? this.descend(child, node) : child;
  }
}
