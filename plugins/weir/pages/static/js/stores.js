// The list of adjunct stores.

import { el } from "./dom.js";
import { page } from "./page.js";
import { moment, pager, table } from "./parts.js";
import { address, given } from "./rest.js";
import { number, seconds, short, size, some, span } from "./words.js";

const wanted = { search: given.get("search") ?? "", after: given.get("after") ?? "" };
const before = []; // where the pages before this one begin
let typing = null;

const search = el("input", {
  type: "search", placeholder: "Search by name", "aria-label": "Search by name (/)", value: wanted.search,
  maxlength: 130, spellcheck: "false", autocomplete: "off",
  input: () => {
    clearTimeout(typing);
    typing = setTimeout(() => { before.length = 0; change({ search: search.value.trim(), after: "" }); }, 200);
  },
});

const shown = page({
  here: "stores",
  title: "Adjunct stores",
  asks: () => ["stores", wanted],
  draw,
  tools: el("div", { class: "tools", role: "search" }, search),
});

function change(changed) {
  Object.assign(wanted, changed);
  history.replaceState(null, "", address("stores", wanted));
  shown.again();
}

function draw({ stores, total, next }, now) {
  if (!stores.length) {
    return el("div", { class: "empty" }, wanted.search
      ? el("p", {}, "No adjunct store is like this.")
      : [el("p", {}, "There is no adjunct store yet: a table with a row per key, kept from a stream, to join events with."),
        el("p", { class: "muted" }, "Trigger the DAG weir_define_adjunct_store, or run ",
          el("code", {}, "weir define-adjunct-store shop/customers --stream shop/changes"), " in a terminal.")]);
  }
  return [table([
    { title: "Store", cell: (one) => el("a", { class: "name", href: address("store", { name: one.store }), "data-key": one.store }, one.store) },
    { title: "Of", cell: (one) => el("a", { href: address("stream", { name: one.stream }) }, one.stream) },
    { title: "Health", cell: health },
    { title: "Keys", number: true, cell: (one) => (one.row_count === null ? "–" : [short(one.row_count), el("small", {}, size(one.bytes))]) },
    { title: "Complete to", cell: (one) => moment(one.complete_to, now) },
    { title: "Version", number: true, cell: (one) => [number(one.version), el("small", {}, `${number(one.versions)} kept`)] },
  ], stores, { caption: "Adjunct stores" }),
  pager({ here: stores.length, total, what: "adjunct store", before, after: wanted.after, next, go: (after) => change({ after }) })];
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
