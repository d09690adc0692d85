/** What the painter draws on: the canvas of the page, or an SVG that is saved or printed. */

export type Point = [number, number];

export interface Surface {
  box(x: number, y: number, width: number, height: number, radius: number, style: Shape): void;
  line(points: readonly Point[], style: Stroke): void;
  text(text: string, x: number, y: number, style: Lettering): void;
}

export interface Shape {
  fill?: string;
  stroke?: string;
  width?: number;
  dash?: boolean;
}

export interface Stroke {
  stroke: string;
  width: number;
  arrow: boolean;
}

export interface Lettering {
  font: string;
  fill: string;
  align: "left" | "center" | "right";
  /** A colour around the letters, for those that stand on lines. */
  halo?: string;
}

const ARROW = 5;

export class CanvasSurface implements Surface {
  constructor(private readonly context: CanvasRenderingContext2D) {}

  box(x: number, y: number, width: number, height: number, radius: number, style: Shape): void {
    const { context } = this;
    context.beginPath();
    context.roundRect(x, y, width, height, radius);
    if (style.fill) {
      context.fillStyle = style.fill;
      context.fill();
    }
    if (style.stroke) {
      context.strokeStyle = style.stroke;
      context.lineWidth = style.width ?? 1;
      context.setLineDash(style.dash ? [5, 4] : []);
      context.stroke();
    }
  }

  line(points: readonly Point[], style: Stroke): void {
    const { context } = this;
    context.setLineDash([]);
    context.strokeStyle = style.stroke;
    context.lineWidth = style.width;
    context.beginPath();
    trace(points, {
      move: (x, y) => {
        context.moveTo(x, y);
      },
      line: (x, y) => {
        context.lineTo(x, y);
      },
      curve: (cx, cy, x, y) => {
        context.quadraticCurveTo(cx, cy, x, y);
      },
    });
    context.stroke();
    const tip = style.arrow ? arrow(points) : null;
    if (!tip) return;
    context.fillStyle = style.stroke;
    context.beginPath();
    tip.forEach(([x, y], place) => {
      if (place === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
    context.fill();
  }

  text(text: string, x: number, y: number, style: Lettering): void {
    const { context } = this;
    context.font = style.font;
    context.textAlign = style.align;
    context.textBaseline = "middle";
    if (style.halo) {
      context.setLineDash([]);
      context.strokeStyle = style.halo;
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeText(text, x, y);
    }
    context.fillStyle = style.fill;
    context.fillText(text, x, y);
  }
}

const SVG = "http://www.w3.org/2000/svg";

export class SvgSurface implements Surface {
  readonly element: SVGSVGElement;

  constructor(x: number, y: number, width: number, height: number, title: string) {
    this.element = document.createElementNS(SVG, "svg");
    this.set(this.element, {
      xmlns: SVG,
      viewBox: [x, y, width, height].map((n) => n.toFixed(1)).join(" "),
      width: width.toFixed(0),
      height: height.toFixed(0),
      role: "img",
    });
    this.add("title", {}).textContent = title;
  }

  box(x: number, y: number, width: number, height: number, radius: number, style: Shape): void {
    this.add("rect", {
      x: x.toFixed(1),
      y: y.toFixed(1),
      width: width.toFixed(1),
      height: height.toFixed(1),
      rx: String(radius),
      fill: style.fill ?? "none",
      stroke: style.stroke ?? "none",
      "stroke-width": String(style.width ?? 1),
      ...(style.dash ? { "stroke-dasharray": "5 4" } : {}),
    });
  }

  line(points: readonly Point[], style: Stroke): void {
    const steps: string[] = [];
    const write = (letter: string, ...numbers: number[]): void => {
      steps.push(letter + numbers.map((n) => n.toFixed(1)).join(" "));
    };
    trace(points, {
      move: (x, y) => {
        write("M", x, y);
      },
      line: (x, y) => {
        write("L", x, y);
      },
      curve: (cx, cy, x, y) => {
        write("Q", cx, cy, x, y);
      },
    });
    this.add("path", {
      d: steps.join(""),
      fill: "none",
      stroke: style.stroke,
      "stroke-width": String(style.width),
    });
    const tip = style.arrow ? arrow(points) : null;
    if (tip)
      this.add("polygon", {
        points: tip.map((p) => p.map((n) => n.toFixed(1)).join(",")).join(" "),
        fill: style.stroke,
      });
  }

  text(text: string, x: number, y: number, style: Lettering): void {
    const weight = /^\d+ /u.exec(style.font)?.[0].trim() ?? "400";
    const size = /(\d+)px/u.exec(style.font)?.[1] ?? "13";
    const element = this.add("text", {
      x: x.toFixed(1),
      y: y.toFixed(1),
      "font-family": "system-ui, sans-serif",
      "font-size": size,
      "font-weight": weight,
      "text-anchor": { left: "start", center: "middle", right: "end" }[style.align],
      "dominant-baseline": "central",
      fill: style.fill,
      ...(style.halo
        ? { stroke: style.halo, "stroke-width": "4", "stroke-linejoin": "round", "paint-order": "stroke" }
        : {}),
    });
    element.textContent = text;
  }

  private add(name: string, attributes: Record<string, string>): SVGElement {
    const element = document.createElementNS(SVG, name);
    this.set(element, attributes);
    this.element.append(element);
    return element;
  }

  private set(element: SVGElement, attributes: Record<string, string>): void {
    for (const [name, value] of Object.entries(attributes)) {
      if (name !== "xmlns") element.setAttribute(name, value);
    }
  }
}

interface Pen {
  move: (x: number, y: number) => void;
  line: (x: number, y: number) => void;
  curve: (cx: number, cy: number, x: number, y: number) => void;
}

/** A smooth line: its inner points are the corners of curves between the middles of its parts. */
function trace(points: readonly Point[], pen: Pen): void {
  const [first] = points;
  const last = points[points.length - 1];
  if (!first || !last) return;
  pen.move(...first);
  for (let place = 1; place < points.length - 1; place++) {
    const [x, y] = points[place] ?? first;
    const [nextX, nextY] = points[place + 1] ?? last;
    pen.curve(x, y, (x + nextX) / 2, (y + nextY) / 2);
  }
  pen.line(...last);
}

function arrow(points: readonly Point[]): Point[] | null {
  const tip = points[points.length - 1];
  const before = points[points.length - 2];
  if (!tip || !before) return null;
  const [x, y] = tip;
  const angle = Math.atan2(y - before[1], x - before[0]);
  const wing = (turn: number): Point => [
    x - ARROW * 1.6 * Math.cos(angle + turn),
    y - ARROW * 1.6 * Math.sin(angle + turn),
  ];
  return [tip, wing(0.42), wing(-0.42)];
}
