// The list of reader groups.

import { el } from "./dom.js";
import { list } from "./list.js";
import { health, moment, table } from "./parts.js";
import { address } from "./rest.js";
import { number, short, size } from "./words.js";

list({
  here: "groups",
  title: "Reader groups",
  what: "reader group",
  count: ({ groups }) => groups.length,
  draw,
  none: [el("p", {}, "There is no reader group yet."), el("p", { class: "muted" }, "Trigger the DAG weir_create_reader_group, or run ",
    el("code", {}, "weir create-reader-group totals --streams shop/orders"), " in a terminal.")],
});

function draw({ groups }, now) {
  const columns = [
    { title: "Reader group", cell: (one) => el("a", { class: "name", href: address("group", { name: one.reader_group }), "data-key": one.reader_group }, one.reader_group) },
    { title: "Health", cell: (one) => health(one.health, now) },
    { title: "Reads", cell: (one) => streams(one.streams) },
    { title: "Unread", number: true, cell: (one) => unread(one.streams) },
    { title: "Readers", number: true, cell: (one) => [number(one.readers), one.open_batches > 0 && el("small", {}, `${number(one.open_batches)} reading`)] },
    { title: "Holds back", cell: (one) => (one.holds ? `until it releases (${one.release ?? "automatic"})` : el("span", { class: "muted" }, "nothing")) },
    { title: "Active", cell: (one) => moment(one.active_at, now) },
  ];
  return table(columns, groups, { caption: "Reader groups" });
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
