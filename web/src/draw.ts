/** The painter: items and edges on a surface, as much of them as can be seen and read. */

import type { Amounts, Classes, NodeSet, Theme } from "./colours";
import { shapeText } from "./model";
import type { Edge, Item, Scene } from "./scene";
import { BOLD_FONT, cut, HEADER, SMALL_FONT, textWidth, titleOf } from "./sizes";
import type { Point, Surface } from "./surface";

export interface Window {
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** Pixels for each unit of the scene. */
  scale: number;
}

export interface Looks {
  theme: Theme;
  selected: Item | null;
  /** Nodes that stand out: of a path, of what a value depends on, or found; null for all. */
  marked: NodeSet | null;
  errors: NodeSet;
  warnings: NodeSet;
  amounts: Amounts | null;
  classes: Classes | null;
}

const READABLE = 0.45; // pixels for each unit, below which letters cannot be read
const LABELLED = 0.7; // the same for the small letters on edges
const LEAST_TITLE = 46; // pixels of a box whose title is drawn at any scale
const RADIUS = 6;
const LINE = 13; // the height of the small letters

/** Where letters stand: their middle, and their width. */
interface Label {
  x: number;
  y: number;
  width: number;
}

export function draw(scene: Scene, window: Window, looks: Looks, surface: Surface): void {
  for (const root of scene.roots) if (root.open) new Painter(window, looks, surface).item(root, 0);
}

class Painter {
  constructor(
    private readonly window: Window,
    private readonly looks: Looks,
    private readonly surface: Surface,
  ) {}

  item(item: Item, depth: number): void {
    const { left, top, right, bottom } = this.window;
    if (item.x > right || item.y > bottom || item.x + item.width < left || item.y + item.height < top) return;
    if (!item.open) {
      this.closed(item);
      return;
    }
    if (item.parent) this.frame(item, depth);
    else this.title(item, this.looks.theme.quiet);
    for (const edge of item.edges) this.edge(edge);
    for (const child of item.children) this.item(child, depth + 1);
    if (this.window.scale >= LABELLED) this.labels(item.edges);
    if (item.parent) this.title(item, this.looks.theme.text);
  }

  private frame(item: Item, depth: number): void {
    const { theme, selected } = this.looks;
    const chosen = item === selected;
    this.surface.box(item.x, item.y, item.width, item.height, RADIUS + 2, {
      fill: depth % 2 ? theme.box : theme.boxDeep,
      stroke: chosen ? theme.accent : theme.border,
      width: chosen ? 2.5 / Math.min(1, this.window.scale) : 1,
      dash: item.kind === "graph" || item.kind === "node",
    });
  }

  /** The title of an open box, which stays readable when the box is small. */
  private title(item: Item, fill: string): void {
    const { scale } = this.window;
    const growth = Math.min(2.5, Math.max(1, 0.8 / scale));
    const { text } = titleOf(item);
    const room = item.width * scale;
    if (room < LEAST_TITLE || textWidth(text, BOLD_FONT) * Math.min(scale, 1) * growth > room - 16) {
      if (scale < READABLE) return;
    }
    const font = growth > 1 ? BOLD_FONT.replace("13px", `${(13 * growth).toFixed(0)}px`) : BOLD_FONT;
    this.surface.text(text, item.x + 10, item.y + HEADER / 2 + 1, { font, fill, align: "left" });
  }

  private closed(item: Item): void {
    const { theme, selected, marked, amounts, classes } = this.looks;
    const { x, y, width, height } = item;
    const chosen = item === selected;
    const faint = marked !== null && !marked.has(item);
    const port = item.kind === "input" || item.kind === "output";
    const radius = port ? height / 2 : RADIUS;
    const stroke = chosen ? theme.accent : marked && !faint ? theme.mark : theme.border;
    const line = (chosen || (marked && !faint) ? 2.5 : 1) / Math.min(1, Math.max(0.3, this.window.scale));
    if (isRepeat(item)) {
      for (const shift of [6, 3]) {
        this.surface.box(x + shift, y + shift, width, height, radius, {
          fill: theme.node,
          stroke: theme.border,
        });
      }
    }
    this.surface.box(x, y, width, height, radius, { fill: this.fill(item), stroke, width: line });
    if (item.kind === "box")
      this.surface.box(x + 2.5, y + 2.5, width - 5, height - 5, radius - 2, {
        stroke: theme.border,
        width: 0.6,
      });
    this.finding(item);
    if (this.window.scale < READABLE) return;
    const { text, detail } = titleOf(item);
    const fill = faint ? theme.quiet : theme.text;
    const middle = x + width / 2;
    this.surface.text(text, middle, y + (detail ? 15 : height / 2 + 0.5), {
      font: BOLD_FONT,
      fill,
      align: "center",
    });
    if (detail)
      this.surface.text(this.detail(item, detail), middle, y + 30, {
        font: SMALL_FONT,
        fill: amounts || classes ? fill : theme.quiet, // on a colour quiet letters are hard to read
        align: "center",
      });
  }

  /** A layer of amounts shows what an item has in place of its detail. */
  private detail(item: Item, detail: string): string {
    const { amounts } = this.looks;
    return amounts && amounts.of(item) > 0 ? amounts.text(item) : detail;
  }

  private fill(item: Item): string {
    const { theme, amounts, classes } = this.looks;
    const plain = hasWork(item) ? theme.work : theme.node;
    if (amounts) {
      const strength = amounts.strength(item);
      return strength > 0 ? mix(theme.node, theme.heat, strength) : theme.node;
    }
    return classes ? (classes.colour(item) ?? theme.node) : plain;
  }

  private finding(item: Item): void {
    const { theme, errors, warnings } = this.looks;
    const isError = errors.has(item);
    if (!isError && !warnings.has(item)) return;
    const colour = isError ? theme.error : theme.warning;
    const size = 9 / Math.min(1, Math.max(0.25, this.window.scale));
    this.surface.box(item.x + item.width - size * 0.6, item.y - size * 0.4, size, size, size / 2, {
      fill: colour,
    });
  }

  private edge(edge: Edge): void {
    const { points } = edge;
    if (points.length < 2 || !this.meets(points)) return;
    const { theme, marked, selected } = this.looks;
    const chosen = selected !== null && (edge.from === selected || edge.to === selected);
    const lit =
      marked !== null &&
      edge.from !== null &&
      edge.to !== null &&
      marked.has(edge.from) &&
      marked.has(edge.to);
    const stroke = chosen ? theme.accent : lit ? theme.mark : theme.edge;
    const width = (chosen || lit ? 2 : 1.1) / Math.min(1, Math.max(0.35, this.window.scale));
    this.surface.line(points, { stroke, width, arrow: edge.to !== null && this.window.scale > READABLE });
  }

  private meets(points: readonly Point[]): boolean {
    const { left, top, right, bottom } = this.window;
    const xs = points.map(([x]) => x);
    const ys = points.map(([, y]) => y);
    return (
      Math.max(...xs) >= left &&
      Math.min(...xs) <= right &&
      Math.max(...ys) >= top &&
      Math.min(...ys) <= bottom
    );
  }

  /** The shapes of values: one that several items read has one label. */
  private labels(edges: readonly Edge[]): void {
    const seen = new Set<string>();
    const taken: Label[] = [];
    for (const edge of edges) {
      const key = `${String(edge.from?.id)}:${edge.values.join(",")}`;
      if (!seen.has(key)) this.label(edge, taken);
      seen.add(key);
    }
  }

  /** Write the shape of a value, unless another one stands there. */
  private label(edge: Edge, taken: Label[]): void {
    const { points, from, to } = edge;
    const [first] = points;
    if (!first || !from || !to || from.kind === "input" || !this.meets(points)) return;
    const { model } = from;
    const [value = 0] = edge.values;
    const shape = cut(shapeText(model.type(value)), 24);
    if (shape === "") return;
    const more = edge.values.length > 1 ? ` +${String(edge.values.length - 1)}` : "";
    const next = points[1] ?? first;
    const middle: Point = points.length > 2 ? next : [(first[0] + next[0]) / 2, (first[1] + next[1]) / 2];
    const { theme } = this.looks;
    const [x, y] = middle;
    const width = textWidth(shape + more, SMALL_FONT);
    if (
      taken.some((other) => Math.abs(other.y - y) < LINE && Math.abs(other.x - x) < (other.width + width) / 2)
    )
      return;
    taken.push({ x, y, width });
    this.surface.text(shape + more, x, y, {
      font: SMALL_FONT,
      fill: theme.quiet,
      align: "center",
      halo: theme.page,
    });
  }
}

function isRepeat(item: Item): boolean {
  return item.kind === "box" && item.model.box(item.number).kind === "repeat";
}

function hasWork(item: Item): boolean {
  return item.kind === "node" && (item.model.node(item.number).madds ?? 0) > 0;
}

/** A colour between two others, both written `#rrggbb`. */
export function mix(one: string, other: string, part: number): string {
  const read = (colour: string): number[] =>
    [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
  const target = read(other);
  const mixed = read(one).map((number, place) => Math.round(number + ((target[place] ?? 0) - number) * part));
  return `rgb(${mixed.join(", ")})`;
}
