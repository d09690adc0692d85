/** The canvas with the graph: panning, zooming, choosing by pointer, touch and keyboard. */

import { draw, type Looks, type Window } from "./draw";
import type { Item, Scene } from "./scene";
import { CanvasSurface, SvgSurface } from "./surface";

export interface StageActions {
  choose: (item: Item | null) => void;
  toggle: (item: Item) => void;
  search: () => void;
  leave: () => void;
}

const LEAST_SCALE = 0.01;
const MOST_SCALE = 4;
const MARGIN = 30;
const DRAG = 4; // pixels, below which a press is a click
const PNG_PIXELS = 8192;

export class Stage {
  readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  private scale = 1;
  private left = 0;
  private top = 0;
  private due = false;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private moved = 0;

  constructor(
    canvas: HTMLCanvasElement,
    private readonly scene: Scene,
    private readonly looks: () => Looks,
    private readonly actions: StageActions,
  ) {
    this.canvas = canvas;
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser cannot draw on a canvas");
    this.context = context;
    new ResizeObserver(() => {
      this.resize();
    }).observe(canvas);
    canvas.addEventListener(
      "wheel",
      (event) => {
        this.wheel(event);
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      this.press(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.move(event);
    });
    for (const name of ["pointerup", "pointercancel"] as const) {
      canvas.addEventListener(name, (event) => {
        this.release(event);
      });
    }
    canvas.addEventListener("dblclick", (event) => {
      const item = this.hit(event.offsetX, event.offsetY);
      if (item?.canOpen) actions.toggle(item);
    });
    canvas.addEventListener("keydown", (event) => {
      this.key(event);
    });
  }

  redraw(): void {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.paint();
    });
  }

  /** Show all of some items, or of the graph. */
  fit(item?: Item): void {
    const around = item ? [item] : this.scene.roots.filter((root) => root.open);
    const x = Math.min(...around.map((one) => one.x));
    const y = Math.min(...around.map((one) => one.y));
    const width = Math.max(...around.map((one) => one.x + one.width)) - x;
    const height = Math.max(...around.map((one) => one.y + one.height)) - y;
    const { clientWidth, clientHeight } = this.canvas;
    const scale = Math.min((clientWidth - 2 * MARGIN) / width, (clientHeight - 2 * MARGIN) / height, 1);
    this.scale = Math.max(LEAST_SCALE, scale);
    this.left = x + width / 2 - clientWidth / 2 / this.scale;
    this.top = y + height / 2 - clientHeight / 2 / this.scale;
    this.redraw();
  }

  /** Show the graph from its beginning, at a scale at which it can be read. */
  start(): void {
    this.fit();
    if (this.scale > 0.5) return;
    const root = this.scene.main;
    this.scale = Math.min(1, Math.max(0.5, (this.canvas.clientWidth - 2 * MARGIN) / root.width));
    const first = root.children.find((child) => child.kind === "input") ?? root;
    const { clientWidth } = this.canvas;
    this.left = Math.max(root.x - MARGIN, first.x + first.width / 2 - clientWidth / 2 / this.scale);
    if (root.width * this.scale < clientWidth)
      this.left = root.x + root.width / 2 - clientWidth / 2 / this.scale;
    this.top = root.y - MARGIN / 2 / this.scale;
    this.redraw();
  }

  /** Move so that an item can be seen; a small one is enlarged until it can be read. */
  show(item: Item): void {
    if (this.scale < 0.6 && !item.open) this.zoom(0.9 / this.scale);
    const { clientWidth, clientHeight } = this.canvas;
    const width = clientWidth / this.scale;
    const height = clientHeight / this.scale;
    const margin = MARGIN / this.scale;
    const middle = item.x + Math.min(item.width, width) / 2;
    const head = item.y + Math.min(item.height, height) / 2;
    if (item.x < this.left + margin || item.x + Math.min(item.width, width) > this.left + width - margin)
      this.left = middle - width / 2;
    if (item.y < this.top + margin || item.y + Math.min(item.height, height) > this.top + height - margin)
      this.top = head - height / 2;
    this.redraw();
  }

  /** The place of an item on the screen, to keep it there while others move. */
  placeOf(item: Item): { x: number; y: number } {
    return { x: (item.x + item.width / 2 - this.left) * this.scale, y: (item.y - this.top) * this.scale };
  }

  keep(item: Item, place: { x: number; y: number }): void {
    const now = this.placeOf(item);
    this.left += (now.x - place.x) / this.scale;
    this.top += (now.y - place.y) / this.scale;
    this.redraw();
  }

  zoom(factor: number, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2): void {
    const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, this.scale * factor));
    this.left += x / this.scale - x / scale;
    this.top += y / this.scale - y / scale;
    this.scale = scale;
    this.redraw();
  }

  pan(x: number, y: number): void {
    this.left += x / this.scale;
    this.top += y / this.scale;
    this.redraw();
  }

  svg(title: string): SVGSVGElement {
    const { x, y, width, height } = this.whole();
    const surface = new SvgSurface(x, y, width, height, title);
    surface.box(x, y, width, height, 0, { fill: this.looks().theme.page });
    draw(
      this.scene,
      { left: x, top: y, right: x + width, bottom: y + height, scale: 1 },
      this.looks(),
      surface,
    );
    return surface.element;
  }

  png(): Promise<Blob | null> {
    const { x, y, width, height } = this.whole();
    const scale = Math.min(2, PNG_PIXELS / Math.max(width, height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(width * scale);
    canvas.height = Math.ceil(height * scale);
    const context = canvas.getContext("2d");
    if (!context) return Promise.resolve(null);
    context.fillStyle = this.looks().theme.page;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.setTransform(scale, 0, 0, scale, -x * scale, -y * scale);
    const window = { left: x, top: y, right: x + width, bottom: y + height, scale };
    draw(this.scene, window, this.looks(), new CanvasSurface(context));
    return new Promise((done) => {
      canvas.toBlob(done, "image/png");
    });
  }

  private whole(): { x: number; y: number; width: number; height: number } {
    const roots = this.scene.roots.filter((root) => root.open);
    const right = Math.max(...roots.map((root) => root.x + root.width));
    const bottom = Math.max(...roots.map((root) => root.y + root.height));
    const x = Math.min(...roots.map((root) => root.x));
    const y = Math.min(...roots.map((root) => root.y));
    return { x: x - MARGIN, y: y - MARGIN, width: right - x + 2 * MARGIN, height: bottom - y + 2 * MARGIN };
  }

  private resize(): void {
    const ratio = devicePixelRatio;
    const { clientWidth, clientHeight } = this.canvas;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.paint();
  }

  private paint(): void {
    const { context, canvas, scale, left, top } = this;
    const ratio = devicePixelRatio;
    const looks = this.looks();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = looks.theme.page;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const factor = scale * ratio;
    context.setTransform(factor, 0, 0, factor, -left * factor, -top * factor);
    const window: Window = {
      left,
      top,
      right: left + canvas.clientWidth / scale,
      bottom: top + canvas.clientHeight / scale,
      scale,
    };
    draw(this.scene, window, looks, new CanvasSurface(context));
  }

  private hit(x: number, y: number): Item | null {
    const place = { x: this.left + x / this.scale, y: this.top + y / this.scale };
    const inside = (item: Item): boolean =>
      place.x >= item.x &&
      place.x <= item.x + item.width &&
      place.y >= item.y &&
      place.y <= item.y + item.height;
    let found: Item | null = null;
    let level = this.scene.roots.filter((root) => root.open);
    for (let item = level.find(inside); item; item = level.find(inside)) {
      found = item;
      level = item.open ? item.children : [];
    }
    return found?.parent ? found : null;
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.ctrlKey || event.metaKey)
      this.zoom(Math.exp(-event.deltaY * unit * 0.01), event.offsetX, event.offsetY);
    else if (event.shiftKey) this.pan(event.deltaY * unit, 0);
    else this.pan(event.deltaX * unit, event.deltaY * unit);
  }

  private press(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (this.pointers.size === 1) this.moved = 0;
  }

  private move(event: PointerEvent): void {
    const old = this.pointers.get(event.pointerId);
    if (!old) return;
    const now = { x: event.offsetX, y: event.offsetY };
    const others = [...this.pointers.entries()]
      .filter(([id]) => id !== event.pointerId)
      .map(([, place]) => place);
    const [other] = others;
    if (other) {
      const before = Math.hypot(old.x - other.x, old.y - other.y);
      const after = Math.hypot(now.x - other.x, now.y - other.y);
      if (before > 0) this.zoom(after / before, (now.x + other.x) / 2, (now.y + other.y) / 2);
      this.moved = DRAG;
    } else {
      this.moved += Math.hypot(now.x - old.x, now.y - old.y);
      if (this.moved >= DRAG) this.pan(old.x - now.x, old.y - now.y);
    }
    this.pointers.set(event.pointerId, now);
  }

  private release(event: PointerEvent): void {
    const known = this.pointers.delete(event.pointerId);
    if (!known || this.moved >= DRAG || event.type === "pointercancel") return;
    this.actions.choose(this.hit(event.offsetX, event.offsetY));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60;
    const keys: Record<string, () => void> = {
      ArrowDown: () => {
        this.follow("down");
      },
      ArrowUp: () => {
        this.follow("up");
      },
      ArrowLeft: () => {
        this.aside(-1);
      },
      ArrowRight: () => {
        this.aside(1);
      },
      Enter: () => {
        this.enter();
      },
      Escape: () => {
        this.actions.leave();
      },
      "/": this.actions.search,
      "+": () => {
        this.zoom(1.25);
      },
      "=": () => {
        this.zoom(1.25);
      },
      "-": () => {
        this.zoom(0.8);
      },
      "0": () => {
        this.fit();
      },
      PageDown: () => {
        this.pan(0, this.canvas.clientHeight - step);
      },
      PageUp: () => {
        this.pan(0, step - this.canvas.clientHeight);
      },
      Home: () => {
        this.start();
      },
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private enter(): void {
    const { selected } = this.looks();
    if (selected?.canOpen) this.actions.toggle(selected);
    else this.choose(selected ?? this.scene.main.children[0]);
  }

  /** Choose the item that an edge leads to, or comes from; at the end of a box what follows the box. */
  private follow(way: "up" | "down"): void {
    let { selected } = this.looks();
    if (!selected) {
      this.choose(this.scene.main.children[0]);
      return;
    }
    for (let box = selected.parent; box; box = box.parent) {
      const here = selected;
      const next = box.edges
        .map(({ from, to }) => (way === "down" ? (from === here ? to : null) : to === here ? from : null))
        .filter((item) => item !== null);
      const middle = (item: Item): number => item.x + item.width / 2;
      next.sort((a, b) => Math.abs(middle(a) - middle(here)) - Math.abs(middle(b) - middle(here)));
      if (next[0]) {
        this.choose(next[0]);
        return;
      }
      selected = box;
    }
  }

  /** Choose the nearest item to the left or to the right. */
  private aside(way: -1 | 1): void {
    const { selected } = this.looks();
    const siblings = selected?.parent?.children ?? [];
    if (!selected) return;
    const beside = siblings.filter((one) => one !== selected && (one.x - selected.x) * way > 0);
    const level = beside.filter(
      (one) => one.y < selected.y + selected.height && one.y + one.height > selected.y,
    );
    const distance = (one: Item): number => Math.abs(one.x - selected.x) + 3 * Math.abs(one.y - selected.y);
    const [next] = (level.length > 0 ? level : beside).sort((a, b) => distance(a) - distance(b));
    this.choose(next);
  }

  private choose(item: Item | undefined): void {
    if (!item) return;
    this.actions.choose(item);
    this.show(item);
  }
}
