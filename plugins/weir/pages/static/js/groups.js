// The list of reader groups.

import { el } from "./dom.js";
import { page } from "./page.js";
import { health, moment, pager, table } from "./parts.js";
import { address, given } from "./rest.js";
import { number, short, size } from "./words.js";

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
  here: "groups",
  title: "Reader groups",
  asks: () => ["groups", wanted],
  draw,
  tools: el("div", { class: "tools", role: "search" }, search),
});

function change(changed) {
  Object.assign(wanted, changed);
  history.replaceState(null, "", address("groups", wanted));
  shown.again();
}

function draw({ groups, total, next }, now) {
  if (!groups.length) {
    return el("div", { class: "empty" }, wanted.search
      ? [el("p", {}, "No reader group is like this.")]
      : [el("p", {}, "There is no reader group yet."), el("p", { class: "muted" }, "Trigger the DAG weir_create_reader_group, or run ",
        el("code", {}, "weir create-reader-group totals --streams shop/orders"), " in a terminal.")]);
  }
  const columns = [
    { title: "Reader group", cell: (one) => el("a", { class: "name", href: address("group", { name: one.reader_group }), "data-key": one.reader_group }, one.reader_group) },
    { title: "Health", cell: (one) => health(one.health, now) },
    { title: "Reads", cell: (one) => streams(one.streams) },
    { title: "Unread", number: true, cell: (one) => unread(one.streams) },
    { title: "Readers", number: true, cell: (one) => [number(one.readers), one.open_batches > 0 && el("small", {}, `${number(one.open_batches)} reading`)] },
    { title: "Holds back", cell: (one) => (one.subscriber ? `until it releases (${one.release ?? "automatic"})` : el("span", { class: "muted" }, "nothing")) },
    { title: "Active", cell: (one) => moment(one.active_at, now) },
  ];
  return [table(columns, groups, { caption: "Reader groups" }),
    pager({ here: groups.length, total, what: "reader group", before, after: wanted.after, next, go: (after) => change({ after }) })];
}

function streams(found) {
  const links = found.slice(0, 3).map((one, i) => [i > 0 && ", ", el("a", { href: address("stream", { name: one.stream }) }, one.stream)]);
  return [links, found.length > 3 && el("small", {}, `and ${number(found.length - 3)} more`)];
}

function unread(found) {
  const events = found.reduce((all, one) => all + one.unread_events, 0);
  const bytes = found.reduce((all, one) => all + one.unread_bytes, 0);
  return [events ? short(events) : "0", events > 0 && el("small", {}, size(bytes))];
}
