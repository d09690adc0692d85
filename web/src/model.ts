/** The data of a page, as `sabir.viewing.page_of` writes it, and the relations that follow from it. */

export interface Operator {
  name: string;
  domain: string;
  version?: number;
  summary?: string;
  signature?: string;
  inputs?: [string, string][];
  outputs?: [string, string][];
  attributes?: [string, string][];
}

export interface Graph {
  label: string;
  kind: "main" | "function" | "subgraph" | "training" | "beside";
  inputs: number[];
  outputs: number[];
  box: number;
  doc?: string;
}

export interface Node {
  name: string;
  op: number;
  graph: number;
  in: number[];
  out: number[];
  attrs?: [string, string][];
  graphs?: number[];
  captures?: number[];
  function?: number;
  params?: number;
  paramsText?: string;
  madds?: number;
  maddsText?: string;
  meta?: [string, string][];
  doc?: string;
}

export interface Box {
  name: string;
  kind: "graph" | "layer" | "repeat" | "block" | "part";
  items: number[];
}

export interface Weight {
  size: number;
  sampled?: number;
  problem?: string;
  values?: string;
  min?: number;
  max?: number;
  mean?: number | null;
  std?: number | null;
  zeros?: number;
  nans?: number;
  infinities?: number;
  histogram?: number[];
  /** Elements of evenly spread rows and columns, from 0 for the least to 255 for the largest, in base 64. */
  map?: { rows: number; columns: number; cells: string };
}

export interface Finding {
  rule: string;
  severity: "error" | "warning";
  message: string;
  hint: string;
  where: string;
  node?: number;
}

export interface Layer {
  name: string;
  title: string;
  unit: string;
  combine: "sum" | "max";
  classes: string[];
  values: Record<string, number>;
  notes: Record<string, string[]>;
  lines: string[];
  groups: number[][];
}

export interface PageData {
  model: { name: string; facts: [string, string][]; doc: string };
  main: number;
  types: string[];
  operators: Operator[];
  graphs: Graph[];
  nodes: Node[];
  values: [string, number][];
  boxes: Box[];
  weights: Record<string, Weight>;
  findings: Finding[];
  layers: Layer[];
  reload: boolean;
}

const NONE = -1;

/** What a list of the page must have at a place: the numbers in it come from the same document. */
export function at<T>(list: readonly T[], place: number): T {
  const found = list[place];
  if (found === undefined) throw new RangeError(`the page has no entry ${String(place)}`);
  return found;
}

export class Model {
  readonly producer: Int32Array;
  readonly readers: number[][];
  readonly boxOfNode: Int32Array;
  readonly parentOfBox: Int32Array;
  readonly graphOfBox: Int32Array;
  /** The node around a subgraph, or -1. */
  readonly ownerOfGraph: Int32Array;
  /** The first call of a function, or -1. */
  readonly callOfGraph: Int32Array;
  readonly findingsOfNode = new Map<number, Finding[]>();
  readonly nodesInBox: Int32Array;

  constructor(readonly data: PageData) {
    const { nodes, values, boxes, graphs } = data;
    this.producer = new Int32Array(values.length).fill(NONE);
    this.readers = values.map(() => []);
    this.boxOfNode = new Int32Array(nodes.length).fill(NONE);
    this.parentOfBox = new Int32Array(boxes.length).fill(NONE);
    this.graphOfBox = new Int32Array(boxes.length).fill(NONE);
    this.ownerOfGraph = new Int32Array(graphs.length).fill(NONE);
    this.callOfGraph = new Int32Array(graphs.length).fill(NONE);
    nodes.forEach((node, number) => {
      for (const value of node.out) if (value >= 0) this.producer[value] = number;
      for (const value of new Set(this.reads(number))) at(this.readers, value).push(number);
      for (const graph of node.graphs ?? []) this.ownerOfGraph[graph] = number;
      const called = node.function ?? NONE;
      const isShown = node.graph === data.main; // a call in another function may itself be called nowhere
      if (called >= 0 && (isShown || this.callOfGraph[called] === NONE)) this.callOfGraph[called] = number;
    });
    boxes.forEach((box, number) => {
      for (const item of box.items) {
        if (item >= 0) this.boxOfNode[item] = number;
        else this.parentOfBox[-1 - item] = number;
      }
    });
    graphs.forEach((graph, number) => (this.graphOfBox[graph.box] = number));
    for (let box = 0; box < boxes.length; box++) {
      const parent = at2(this.parentOfBox, box);
      if (parent >= 0) this.graphOfBox[box] = at2(this.graphOfBox, parent);
    }
    for (const finding of data.findings) {
      if (finding.node === undefined) continue;
      const found = this.findingsOfNode.get(finding.node);
      if (found) found.push(finding);
      else this.findingsOfNode.set(finding.node, [finding]);
    }
    const counts = this.totals(() => 1, "sum");
    this.nodesInBox = Int32Array.from(counts);
  }

  node(number: number): Node {
    return at(this.data.nodes, number);
  }

  operator(node: number): Operator {
    return at(this.data.operators, this.node(node).op);
  }

  box(number: number): Box {
    return at(this.data.boxes, number);
  }

  graph(number: number): Graph {
    return at(this.data.graphs, number);
  }

  valueName(value: number): string {
    return at(this.data.values, value)[0];
  }

  type(value: number): string {
    return at(this.data.types, at(this.data.values, value)[1]);
  }

  weight(value: number): Weight | undefined {
    return this.data.weights[String(value)];
  }

  /** The values that a node reads, with those that its subgraphs read. */
  reads(node: number): number[] {
    const { in: operands, captures } = this.node(node);
    return [...operands, ...(captures ?? [])].filter((value) => value >= 0);
  }

  /** The graphs that open in place of a node: its subgraphs, or the body of the function that it calls. */
  graphsOfNode(node: number): number[] {
    const { graphs, function: called } = this.node(node);
    return called === undefined ? (graphs ?? []) : [called];
  }

  /** All nodes in a box, without those of graphs inside nodes. */
  nodesOf(box: number): number[] {
    const found: number[] = [];
    const pending = [box];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (const item of this.box(next).items) {
        if (item >= 0) found.push(item);
        else pending.push(-1 - item);
      }
    }
    return found;
  }

  /** The item of a box that a node is in: the node, or -1 - box; undefined for a node that is elsewhere. */
  itemOf(box: number, node: number): number | undefined {
    let inner = at2(this.boxOfNode, node);
    if (inner === box) return node;
    while (inner >= 0) {
      const parent = at2(this.parentOfBox, inner);
      if (parent === box) return -1 - inner;
      inner = parent;
    }
    return undefined;
  }

  /** For each box the sum, or the largest, of what its nodes have, those of their subgraphs included. */
  totals(amount: (node: number) => number, combine: "sum" | "max"): Float64Array {
    const found = new Float64Array(this.data.boxes.length);
    // a box comes after the one around it, and a subgraph after the graph of its node
    for (let box = found.length - 1; box >= 0; box--) {
      let total = 0;
      for (const item of this.box(box).items) {
        const part = item >= 0 ? this.amountOf(item, amount, found, combine) : at2(found, -1 - item);
        total = combine === "sum" ? total + part : Math.max(total, part);
      }
      found[box] = total;
    }
    return found;
  }

  /** What a node has, with its subgraphs; what a function costs is part of the costs of each call. */
  amountOf(
    node: number,
    amount: (node: number) => number,
    boxes: Float64Array,
    combine: "sum" | "max",
  ): number {
    let total = amount(node);
    for (const graph of this.node(node).graphs ?? []) {
      const part = at2(boxes, this.graph(graph).box);
      total = combine === "sum" ? total + part : Math.max(total, part);
    }
    return total;
  }

  /** All nodes that a node depends on. */
  ancestors(node: number): Set<number> {
    return this.reach(node, (one) => this.reads(one).map((value) => at2(this.producer, value)));
  }

  /** All nodes that depend on a node. */
  descendants(node: number): Set<number> {
    return this.reach(node, (one) => this.node(one).out.flatMap((v) => (v < 0 ? [] : at(this.readers, v))));
  }

  private reach(start: number, next: (node: number) => number[]): Set<number> {
    const found = new Set([start]);
    const pending = [start];
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      for (const other of next(node)) {
        if (other < 0 || found.has(other)) continue;
        found.add(other);
        pending.push(other);
      }
    }
    return found;
  }
}

/** The entry of a typed array at a place that it has. */
export function at2(list: Int32Array | Float64Array, place: number): number {
  return list[place] ?? NONE;
}

/** The shape in the text of a type, `N×3` of `float[N,3]`; other types than those of tensors are as they are. */
export function shapeText(type: string): string {
  const parts = /^\w+(?:\[(.*)\])?$/u.exec(type);
  if (!parts) return type;
  const [, inside] = parts;
  if (inside === undefined) return "scalar";
  return inside === "" ? "any shape" : inside.replaceAll(",", "×");
}
