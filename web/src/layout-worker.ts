/** Layouts of open boxes, in a worker: each box alone, from the innermost, so that what is laid out is small. */

import { Graph, layout } from "@dagrejs/dagre";
import type { LaidOut, LayoutReply, LayoutRequest, OpenBox } from "./layout";

const MARGIN = 14;
const ENTRY = 14;
const known = new Map<string, LaidOut>();
const MOST_KNOWN = 5000;

function laidOut(box: OpenBox): LaidOut {
  const inner = box.children.map((child) => (child.open ? laidOut(child.open) : null));
  const sizes = box.children.map((child, place) => {
    const inside = inner[place];
    return inside ? [inside.width, inside.height] : [child.width, child.height];
  });
  const key = JSON.stringify([box.header, sizes, box.edges]);
  const own = known.get(key) ?? layered(box, sizes as [number, number][]);
  if (known.size > MOST_KNOWN) known.clear();
  known.set(key, own);
  return { ...own, inner };
}

/** `IN` is where values enter a box, above everything inside it, and `OUT` where they leave it. */
const IN = "in";
const OUT = "out";

function layered(box: OpenBox, sizes: [number, number][]): LaidOut {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, edgesep: 10, marginx: MARGIN, marginy: 4 });
  sizes.forEach(([width, height], place) => graph.setNode(String(place), { width, height }));
  const enters = box.edges.some(([from]) => from < 0);
  const leaves = box.edges.some(([, to]) => to < 0);
  if (enters) graph.setNode(IN, { width: 2, height: 1 });
  if (leaves) graph.setNode(OUT, { width: 2, height: 1 });
  box.edges.forEach(([from, to, weight], place) => {
    const ends = [from < 0 ? IN : String(from), to < 0 ? OUT : String(to)] as const;
    graph.setEdge(...ends, { weight }, String(place));
  });
  const bounds = box.edges.length;
  sizes.forEach((_, place) => {
    const name = String(place);
    if (enters && (graph.predecessors(name) ?? []).length === 0)
      graph.setEdge(IN, name, { weight: 1 }, `in${String(bounds)}`);
    if (leaves && (graph.successors(name) ?? []).length === 0)
      graph.setEdge(name, OUT, { weight: 1 }, `out${String(bounds)}`);
  });
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  // the first row has the room below the title that a row of nodes above it would have
  const header = enters ? box.header - ENTRY : box.header;
  const places = sizes.map(([w, h], place): [number, number] => {
    const { x = 0, y = 0 } = graph.node(String(place)) as { x?: number; y?: number };
    return [x - w / 2, y - h / 2 + header];
  });
  const edges = box.edges.map(([from, to], place) => {
    const ends = [from < 0 ? IN : String(from), to < 0 ? OUT : String(to)] as const;
    const { points = [] } = graph.edge(...ends, String(place)) as { points?: { x: number; y: number }[] };
    return points.map(({ x, y }): [number, number] => [x, y + header]);
  });
  const wide = Math.max(width, box.least);
  const shift = (wide - width) / 2;
  return {
    width: wide,
    height: height + header + (leaves ? -ENTRY : MARGIN / 2),
    places: places.map(([x, y]) => [x + shift, y]),
    edges: edges.map((points) => points.map(([x, y]) => [x + shift, y])),
    inner: [],
  };
}

self.onmessage = ({ data }: MessageEvent<LayoutRequest>) => {
  const reply: LayoutReply = { number: data.number, roots: data.roots.map(laidOut) };
  self.postMessage(reply);
};
