// The tables that there are.

import { el } from "./dom.js";
import { page } from "./page.js";
import { table } from "./parts.js";
import { address } from "./rest.js";

page({ here: "tables", title: "Tables", asks: () => ["tables", {}], draw });

function draw({ tables }) {
  return table([
    { title: "Table", cell: ({ name, title, of_stream: one }) => (one ? title : el("a", { class: "name", href: address("table", { of: name }), "data-key": name }, title)) },
    { title: "What it has", wide: true, cell: (one) => [one.about, one.of_stream && el("small", {}, "From the page of a stream.")] },
  ], tables, { caption: "Tables" });
}
