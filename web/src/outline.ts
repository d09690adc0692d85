/** The items in view as a tree of lines, for keyboards and screen readers, and for finding one's way. */

import { make } from "./dom";
import type { Item, Scene } from "./scene";
import { titleOf } from "./sizes";

const MOST_LINES = 1500;

export class Outline {
  readonly element: HTMLElement;
  readonly note = make("p", { class: "note" });
  private readonly lines = new Map<Item, HTMLElement>();
  private selected: Item | null = null;

  constructor(
    private readonly scene: Scene,
    private readonly choose: (item: Item) => void,
    private readonly toggle: (item: Item) => void,
  ) {
    this.element = make("ul", { role: "tree", "aria-label": "Items in view", class: "tree" });
    this.element.addEventListener("click", (event) => {
      const item = this.itemAt(event.target);
      if (!item) return;
      if (event.target instanceof Element && event.target.closest(".twist") && item.canOpen)
        this.toggle(item);
      else this.choose(item);
    });
    this.element.addEventListener("keydown", (event) => {
      this.key(event);
    });
  }

  /** Write the lines again, after items were opened or closed. */
  update(): void {
    const hadFocus = this.element.contains(document.activeElement);
    this.lines.clear();
    this.element.replaceChildren();
    const roots = this.scene.roots;
    for (const root of roots) this.branch(root, this.element, 1);
    const isWhole = this.lines.size < MOST_LINES;
    this.note.textContent = isWhole ? "" : `The first ${String(MOST_LINES)} open items are listed.`;
    this.select(this.selected, hadFocus);
  }

  select(item: Item | null, focus = false): void {
    const old = this.selected && this.lines.get(this.selected);
    old?.setAttribute("aria-selected", "false");
    old?.setAttribute("tabindex", "-1");
    this.selected = item;
    const line = (item && this.lines.get(item)) ?? this.lines.values().next().value;
    if (!line) return;
    for (const other of this.element.querySelectorAll('[tabindex="0"]')) other.setAttribute("tabindex", "-1");
    line.setAttribute("tabindex", "0");
    if (item && this.lines.has(item)) line.setAttribute("aria-selected", "true");
    if (focus) line.focus();
    else if (item) line.firstElementChild?.scrollIntoView({ block: "nearest" });
  }

  private branch(item: Item, list: HTMLElement, level: number): void {
    if (this.lines.size >= MOST_LINES) return;
    const { text, detail } = titleOf(item);
    const twist = make(
      "span",
      { class: "twist", "aria-hidden": "true" },
      item.canOpen ? (item.open ? "▾" : "▸") : "",
    );
    const label = make("span", { class: "line" }, twist, text, detail && make("small", {}, ` ${detail}`));
    const line = make(
      "li",
      {
        role: "treeitem",
        "aria-level": String(level),
        "aria-selected": "false",
        tabindex: "-1",
        class: item.kind,
      },
      label,
    );
    if (item.canOpen) line.setAttribute("aria-expanded", String(item.open));
    this.lines.set(item, line);
    list.append(line);
    if (!item.open) return;
    const group = make("ul", { role: "group" });
    for (const child of item.children) this.branch(child, group, level + 1);
    if (group.childElementCount > 0) line.append(group);
  }

  private itemAt(target: EventTarget | null): Item | null {
    const line = target instanceof Element ? target.closest('[role="treeitem"]') : null;
    for (const [item, element] of this.lines) if (element === line) return item;
    return null;
  }

  private key(event: KeyboardEvent): void {
    const item = this.itemAt(event.target);
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const order = [...this.lines.keys()];
    const place = order.indexOf(item);
    const keys: Record<string, () => void> = {
      ArrowDown: () => {
        this.go(order[place + 1]);
      },
      ArrowUp: () => {
        this.go(order[place - 1]);
      },
      ArrowRight: () => {
        if (item.canOpen && !item.open) this.toggle(item);
        else if (item.open) this.go(item.children[0]);
      },
      ArrowLeft: () => {
        if (item.open && item.parent) this.toggle(item);
        else this.go(item.parent ?? undefined);
      },
      Home: () => {
        this.go(order[0]);
      },
      End: () => {
        this.go(order[order.length - 1]);
      },
      Enter: () => {
        if (item.canOpen && item.parent) this.toggle(item);
      },
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private go(item: Item | undefined): void {
    if (!item) return;
    this.choose(item);
    this.select(item, true);
  }
}
