/** Amounts of a layer by box, as areas: which parts of the model have most parameters, or most work. */

import { hierarchy, treemap, type HierarchyRectangularNode } from "d3-hierarchy";
import type { Amounts } from "./colours";
import { mix, type Looks } from "./draw";
import { make } from "./dom";
import type { Item } from "./scene";
import { BOLD_FONT, textWidth, titleOf } from "./sizes";

const SVG = "http://www.w3.org/2000/svg";
const DEEPEST = 4;
const LEAST_AREA = 30; // square pixels
const HEAD = 18;

export function treemapOf(
  root: Item,
  amounts: Amounts,
  looks: Looks,
  width: number,
  height: number,
  choose: (item: Item) => void,
): HTMLElement {
  const inside = (item: Item): Item[] => (item.kind === "box" || item.kind === "graph" ? item.children : []);
  const tree = hierarchy(root, (item) =>
    depth(item, root) < DEEPEST ? inside(item).filter((child) => amounts.of(child) > 0) : [],
  );
  tree.sum((item) => (inside(item).length > 0 && depth(item, root) < DEEPEST ? 0 : amounts.of(item)));
  tree.sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const placed = treemap<Item>().size([width, height]).paddingInner(2).paddingOuter(3).paddingTop(HEAD)(tree);
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", `0 0 ${String(width)} ${String(height)}`);
  drawing.setAttribute("role", "group");
  drawing.setAttribute("aria-label", `${amounts.layer.title} by part of the model`);
  for (const node of placed.descendants()) {
    const area = (node.x1 - node.x0) * (node.y1 - node.y0);
    if (area >= LEAST_AREA) drawing.append(tile(node, amounts, looks, choose));
  }
  const total = make(
    "p",
    {},
    `${amounts.layer.title}: ${amounts.text(root)}`,
    ...amounts.layer.lines.map((line) => ` ${line}`),
  );
  return make("div", { class: "treemap" }, total, drawing as unknown as HTMLElement);
}

function depth(item: Item, root: Item): number {
  let found = 0;
  for (let one: Item | null = item; one && one !== root; one = one.parent) found++;
  return found;
}

function tile(
  node: HierarchyRectangularNode<Item>,
  amounts: Amounts,
  looks: Looks,
  choose: (item: Item) => void,
): SVGElement {
  const { theme } = looks;
  const width = node.x1 - node.x0;
  const height = node.y1 - node.y0;
  const group = document.createElementNS(SVG, "g");
  const rect = document.createElementNS(SVG, "rect");
  const label = `${titleOf(node.data).text}: ${amounts.text(node.data)}`;
  const attributes = { x: node.x0, y: node.y0, width, height, rx: 3 };
  for (const [name, value] of Object.entries(attributes)) rect.setAttribute(name, String(value));
  rect.setAttribute(
    "fill",
    node.children ? theme.box : mix(theme.node, theme.heat, 0.25 + 0.5 * amounts.strength(node.data)),
  );
  rect.setAttribute("stroke", theme.border);
  const title = document.createElementNS(SVG, "title");
  title.textContent = label;
  group.append(title, rect);
  if (height >= HEAD - 2 && textWidth(label, BOLD_FONT) * 0.86 < width - 10) {
    const text = document.createElementNS(SVG, "text");
    text.setAttribute("x", String(node.x0 + 6));
    text.setAttribute("y", String(node.y0 + 13));
    text.setAttribute("fill", theme.text);
    text.textContent = label;
    group.append(text);
  }
  if (!node.children) {
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", label);
    group.addEventListener("click", () => {
      choose(node.data);
    });
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") choose(node.data);
    });
  }
  return group;
}
