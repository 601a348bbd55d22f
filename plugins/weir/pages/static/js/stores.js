// The list of adjunct stores.

import { el } from "./dom.js";
import { list } from "./list.js";
import { moment, table } from "./parts.js";
import { address } from "./rest.js";
import { number, seconds, short, size, some, span } from "./words.js";

list({
  here: "stores",
  title: "Adjunct stores",
  what: "adjunct store",
  count: ({ stores }) => stores.length,
  draw,
  none: [el("p", {}, "There is no adjunct store yet: a table with a row per key, kept from a stream, to join events with."),
    el("p", { class: "muted" }, "Trigger the DAG weir_define_adjunct_store, or run ",
      el("code", {}, "weir define-adjunct-store shop/customers --stream shop/changes"), " in a terminal.")],
});

function draw({ stores }, now) {
  return table([
    { title: "Store", cell: (one) => el("a", { class: "name", href: address("store", { name: one.store }), "data-key": one.store }, one.store) },
    { title: "Of", cell: (one) => el("a", { href: address("stream", { name: one.stream }) }, one.stream) },
    { title: "Health", cell: health },
    { title: "Keys", number: true, cell: (one) => (one.row_count === null ? "–" : [short(one.row_count), el("small", {}, size(one.bytes))]) },
    { title: "Complete to", cell: (one) => moment(one.complete_to, now) },
    { title: "Version", number: true, cell: (one) => [number(one.version), el("small", {}, `${number(one.versions)} kept`)] },
  ], stores, { caption: "Adjunct stores" });
}

function health(one) {
  const [level, words] = one.error ? ["bad", `the last build failed: ${one.error}`]
    : one.stream_deleted ? ["rest", "its stream is deleted"]
    : one.building ? ["good", "is being built"]
    : one.version === null ? ["warn", "has no version yet"]
    : one.events_behind ? ["good", `${some(one.events_behind, "event")} behind${one.time_behind ? `, for ${span(seconds(one.time_behind))}` : ""}`]
    : ["good", "has everything"];
  return el("span", { class: `health ${level}` }, el("span", { class: "dot", "aria-hidden": "true" }), el("span", {}, words));
}
