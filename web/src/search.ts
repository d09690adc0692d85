/** Nodes by name, operator, shape, element type and finding. */

import type { Model } from "./model";

export const HELP =
  "Words are looked for in operators, names and values; op: name: shape: type: finding: in one of these.";

const FIELDS = ["op", "name", "shape", "type", "finding"] as const;
type Field = (typeof FIELDS)[number];
type Texts = Record<Field, string>;

export class Search {
  private texts: Texts[] | null = null;

  constructor(private readonly model: Model) {}

  /** The nodes that every word of a query fits. */
  find(query: string): number[] {
    const words = query.toLowerCase().split(/\s+/u).filter(Boolean).map(word);
    if (words.length === 0) return [];
    this.texts ??= this.model.data.nodes.map((_, node) => this.textsOf(node));
    return this.texts.flatMap((texts, node) => (words.every((one) => fits(texts, one)) ? [node] : []));
  }

  private textsOf(number: number): Texts {
    const { model } = this;
    const node = model.node(number);
    const { name, domain } = model.operator(number);
    const values = [...node.in, ...node.out].filter((value) => value >= 0);
    const types = values.map((value) => model.type(value).toLowerCase());
    const findings = model.findingsOfNode.get(number) ?? [];
    return {
      op: `${domain}.${name}`.toLowerCase(),
      name: [node.name, ...values.map((value) => model.valueName(value))].join("\n").toLowerCase(),
      shape: types.map((type) => type.replace(/^[^[]*/u, "").replaceAll(",", "x")).join(" "),
      type: types.map((type) => type.replace(/\[.*/u, "")).join(" "),
      finding: findings
        .map((f) => `${f.rule} ${f.severity} ${f.message}`)
        .join("\n")
        .toLowerCase(),
    };
  }
}

interface Word {
  field: Field | null;
  text: string;
}

function word(text: string): Word {
  const [head = "", ...rest] = text.split(":");
  const field = FIELDS.find((one) => one === head);
  if (!field || rest.length === 0) return { field: null, text };
  const looked = rest.join(":");
  return { field, text: field === "shape" ? looked.replaceAll(/[×,]/gu, "x") : looked };
}

function fits(texts: Texts, { field, text }: Word): boolean {
  switch (field) {
    case null:
      return texts.op.includes(text) || texts.name.includes(text);
    case "type":
      return texts.type.split(" ").some((type) => type.startsWith(text));
    case "shape":
      return new RegExp(`(^|[^0-9a-wyz_])${escaped(text)}($|[^0-9a-wyz_])`, "u").test(texts.shape);
    case "finding":
      return texts.finding !== "" && texts.finding.includes(text);
    default:
      return texts[field].includes(text);
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/gu, "\\$&");
}
