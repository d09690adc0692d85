/** Sizes and places of all visible items: asked of a worker, and written into the items. */

import type { Edge, Item, Scene } from "./scene";
import { HEADER, sizeOf, titleOf } from "./sizes";

/** An open box: its items with their sizes, and edges between their places, -1 for the outside. */
export interface OpenBox {
  header: number;
  least: number;
  children: { width: number; height: number; open: OpenBox | null }[];
  edges: [number, number, number][];
}

export interface LaidOut {
  width: number;
  height: number;
  places: [number, number][];
  edges: [number, number][][];
  inner: (LaidOut | null)[];
}

export interface LayoutRequest {
  number: number;
  roots: OpenBox[];
}

export interface LayoutReply {
  number: number;
  roots: LaidOut[];
}

declare const WORKER_SOURCE: string;

const ROOT_GAP = 60;
const OWN_EDGE = 4;
const CROSSING_EDGE = 1;

export class Layouter {
  private readonly worker: Worker;
  private number = 0;
  private waiting: { number: number; done: () => void } | null = null;

  constructor(private readonly scene: Scene) {
    const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.worker.onmessage = ({ data }: MessageEvent<LayoutReply>) => {
      if (this.waiting?.number !== data.number) return; // a later request is under way
      const { done } = this.waiting;
      this.waiting = null;
      this.write(data.roots);
      done();
    };
  }

  /** Lay everything out; the promise of a request that another one overtakes never resolves. */
  run(): Promise<void> {
    const number = ++this.number;
    const request: LayoutRequest = { number, roots: this.scene.roots.filter((r) => r.open).map(openBox) };
    return new Promise((done) => {
      this.waiting = { number, done };
      this.worker.postMessage(request);
    });
  }

  private write(roots: LaidOut[]): void {
    let x = 0;
    this.scene.roots
      .filter((root) => root.open)
      .forEach((root, place) => {
        const found = roots[place];
        if (!found) return;
        place_(root, found, x, 0);
        x += found.width + ROOT_GAP;
      });
  }
}

function openBox(item: Item): OpenBox {
  const children = item.children;
  const places = new Map(children.map((child, place) => [child, place]));
  const number = (end: Item | null): number => (end ? (places.get(end) ?? -1) : -1);
  return {
    header: HEADER,
    least: titleOf(item).width + 28,
    children: children.map((child) => {
      const { width, height } = sizeOf(child);
      return { width, height, open: child.open ? openBox(child) : null };
    }),
    edges: item.edges.map(({ from, to }) => [
      number(from),
      number(to),
      from && to ? OWN_EDGE : CROSSING_EDGE,
    ]),
  };
}

function place_(item: Item, found: LaidOut, x: number, y: number): void {
  item.x = x;
  item.y = y;
  item.width = found.width;
  item.height = found.height;
  item.children.forEach((child, place) => {
    const [left, top] = found.places[place] ?? [0, 0];
    const inner = found.inner[place];
    if (inner) {
      place_(child, inner, x + left, y + top);
      return;
    }
    const { width, height } = sizeOf(child);
    child.x = x + left;
    child.y = y + top;
    child.width = width;
    child.height = height;
  });
  item.edges.forEach((edge, place) => {
    edge.points = (found.edges[place] ?? []).map(([left, top]) => [x + left, y + top]);
    attach(item, edge);
  });
}

/** Let an edge of an open box begin and end in the middle of its sides, where the edges inside it do. */
function attach(item: Item, edge: Edge): void {
  const { points } = edge;
  const first = points[0];
  const last = points[points.length - 1];
  if (!first || !last) return;
  if (!edge.from) points[0] = [item.x + item.width / 2, item.y + HEADER - 4];
  if (!edge.to) points[points.length - 1] = [item.x + item.width / 2, item.y + item.height];
  if (edge.from?.open) points[0] = [edge.from.x + edge.from.width / 2, edge.from.y + edge.from.height];
  if (edge.to?.open) points[points.length - 1] = [edge.to.x + edge.to.width / 2, edge.to.y];
}
