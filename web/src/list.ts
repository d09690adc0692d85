/** The list of models of a folder, as `sabir view --serve` shows it. */

import { amountText } from "./colours";
import { make } from "./dom";

export interface ModelList {
  list: { name: string; address: string; size: number }[];
  folder: string;
}

export function listPage({ list, folder }: ModelList): HTMLElement {
  const rows = list.map(({ name, address, size }) =>
    make("tr", {}, make("td", {}, make("a", { href: address }, name)), make("td", {}, amountText(size, "B"))),
  );
  const none = make("p", {}, "There is no model in this folder.");
  const head = make(
    "thead",
    {},
    make("tr", {}, make("th", { scope: "col" }, "Model"), make("th", { scope: "col" }, "Size")),
  );
  const models = make("table", {}, head, make("tbody", {}, ...rows));
  return make("main", { class: "list" }, make("h1", {}, folder), rows.length > 0 ? models : none);
}
