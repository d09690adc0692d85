/** What stands in an item, and how much room that takes. */

import { at, shapeText } from "./model";
import type { Item } from "./scene";

export const HEADER = 30;
export const FONT = '13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
export const SMALL_FONT = '11px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
export const BOLD_FONT = `600 ${FONT}`;

const NONE = -1;
const LEAST_WEIGHT = 16; // elements, below which a constant says less than a name
const LONGEST = 28;
const PADDING = 20;
const LEAST_WIDTH = 56;
const ONE_LINE = 28;
const TWO_LINES = 42;

export interface Title {
  text: string;
  detail: string;
  width: number;
}

const context = document.createElement("canvas").getContext("2d");
const widths = new Map<string, number>();
const titles = new WeakMap<Item, Title>();

export function textWidth(text: string, font: string): number {
  const key = `${font}|${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (context) context.font = font;
    width = context ? context.measureText(text).width : text.length * 7;
    widths.set(key, width);
  }
  return width;
}

/** A text that fits into a node: its end says more than its beginning. */
export function cut(text: string, most = LONGEST): string {
  const line = text.replaceAll("\n", " ");
  return line.length <= most ? line : `…${line.slice(line.length - most + 1)}`;
}

export function titleOf(item: Item): Title {
  let title = titles.get(item);
  if (!title) {
    const [text, detail] = texts(item);
    const width = Math.max(textWidth(text, BOLD_FONT), textWidth(detail, SMALL_FONT));
    titles.set(item, (title = { text, detail, width }));
  }
  return title;
}

/** The size of a closed item. */
export function sizeOf(item: Item): { width: number; height: number } {
  const { width, detail } = titleOf(item);
  return { width: Math.max(LEAST_WIDTH, Math.ceil(width) + PADDING), height: detail ? TWO_LINES : ONE_LINE };
}

function texts(item: Item): [string, string] {
  const { model, number } = item;
  switch (item.kind) {
    case "node":
      return [cut(model.operator(number).name), nodeDetail(item)];
    case "box":
      return [boxName(item), count(model.nodesInBox[number] ?? 0, "node")];
    case "graph":
      return [cut(model.graph(number).label), ""];
    default: {
      if (item.values.length > 1) return [`${String(item.values.length)} ${item.kind}s`, ""];
      const value = at(item.values, 0);
      return [cut(model.valueName(value)), shapeText(cut(model.type(value)))];
    }
  }
}

function boxName(item: Item): string {
  const box = item.model.box(item.number);
  const name = cut(box.name);
  return box.kind === "repeat" ? `${name}  ×${String(repeatCount(item))}` : name;
}

/** How many blocks a repeat has: they may be in parts. */
export function repeatCount(item: Item): number {
  const { model } = item;
  const blocks = (box: number): number => {
    let found = 0;
    for (const one of model.box(box).items) {
      const part = one < 0 && model.box(-1 - one).kind === "part";
      found += part ? blocks(-1 - one) : 1;
    }
    return found;
  };
  return blocks(item.number);
}

/** Below the operator: the shape of the largest weight, the value of a constant, or the last part of the name. */
function nodeDetail(item: Item): string {
  const { model, number } = item;
  const node = model.node(number);
  const size = (value: number): number => (value < 0 ? 0 : (model.weight(value)?.size ?? 0));
  const weight = node.in.reduce((most, value) => (size(value) > size(most) ? value : most), NONE);
  if (size(weight) >= LEAST_WEIGHT) return cut(shapeText(model.type(weight)));
  const [constant] = node.in.length === 0 ? (node.attrs ?? []) : [];
  if (constant) return cut(constant[1]);
  const last = node.name.split("/").pop() ?? "";
  const words = last.toLowerCase().replaceAll(/^node_?|[_\d.]/gu, "");
  return words === "" || words === model.operator(number).name.toLowerCase() ? "" : cut(last);
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
