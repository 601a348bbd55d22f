// The list of streams.

import { el } from "./dom.js";
import { page } from "./page.js";
import { health, moment, pager, rate, table } from "./parts.js";
import { address, ask, given } from "./rest.js";
import { number, short, size, some } from "./words.js";

const wanted = {
  search: given.get("search") ?? "", scope: given.get("scope") ?? "", tag: given.get("tag") ?? "",
  owner: given.get("owner") ?? "",
  state: given.get("state") ?? "", sort: given.get("sort") ?? "name", after: given.get("after") ?? "",
};
const before = []; // where the pages before this one begin

const search = el("input", {
  type: "search", placeholder: "Search by name", "aria-label": "Search by name (/)", value: wanted.search,
  maxlength: 130, spellcheck: "false", autocomplete: "off", input: () => soon({ search: search.value.trim() }),
});
const scope = choice("Scope", "scope", [["", "All scopes"]]);
const tag = choice("Tag", "tag", [["", "All tags"]]);
const owner = choice("Owner", "owner", [["", "All owners"]]);
const state = choice("State", "state", [["", "Active and sealed"], ["active", "Active"], ["sealed", "Sealed"]]);
const sort = choice("Sort", "sort", [["name", "By name"], ["changed", "Last changed first"], ["created", "Newest first"]]);
scope.hidden = tag.hidden = owner.hidden = true;

const shown = page({
  here: "streams",
  title: "Streams",
  asks: () => ["streams", wanted],
  draw,
  tools: el("div", { class: "tools", role: "search" }, search, scope, tag, owner, state, sort),
});

ask("scopes").then(({ data }) => {
  for (const [place, name, found] of [[scope, "scope", data.scopes], [tag, "tag", data.tags], [owner, "owner", data.owners]]) {
    place.append(...found.map((one) => el("option", { value: one }, one)));
    place.value = wanted[name];
    place.hidden = found.length < (name === "owner" ? 1 : 2) && !wanted[name]; // most streams have no owner
  }
}).catch(() => {}); // the list itself says what is wrong

function choice(label, name, options) {
  const made = el("select", { "aria-label": label, change: () => change({ [name]: made.value }) },
    options.map(([value, text]) => el("option", { value }, text)));
  made.value = wanted[name];
  return made;
}

let typing = null;

function soon(changed) {
  clearTimeout(typing);
  typing = setTimeout(() => change(changed), 200);
}

function change(changed) {
  if (!("after" in changed)) before.length = 0;
  Object.assign(wanted, { after: "" }, changed);
  const { sort, ...rest } = wanted;
  history.replaceState(null, "", address("streams", { ...rest, sort: sort === "name" ? "" : sort }));
  shown.again();
}

function draw({ streams, total, next }, now) {
  if (!streams.length) return el("div", { class: "empty" }, nothing());
  const columns = [
    { title: "Stream", cell: (one) => name(one) },
    { title: "Health", cell: (one) => health(one.health, now) },
    { title: "Rate", cell: (one) => rate(one.activity) },
    { title: "Size", number: true, cell: (one) => [size(one.bytes), el("small", {}, `${short(one.events)} event${one.events === 1 ? "" : "s"}`)] },
    { title: "Segments", number: true, cell: (one) => number(one.segments) },
    { title: "Unread", number: true, cell: (one) => unread(one.groups) },
    { title: "Keeps", cell: (one) => one.retention },
    { title: "Changed", cell: (one) => moment(one.changed_at, now) },
  ];
  return [table(columns, streams, { caption: "Streams" }), pager({ here: streams.length, total, what: "stream", before, after: wanted.after, next, go: (after) => change({ after }) })];
}

function name(one) {
  const [scope, rest] = one.stream.split("/");
  return [
    el("a", { class: "name", href: address("stream", { name: one.stream }), "data-key": one.stream },
      el("span", { class: "muted" }, `${scope}/`), rest),
    one.tags.length > 0 && el("span", { class: "tags" }, one.tags.map((tag) => el("span", { class: "tag" }, tag))),
  ];
}

function unread(groups) {
  if (!groups.length) return el("span", { class: "muted" }, "no group");
  const most = Math.max(...groups.map((one) => one.unread_events));
  return [most ? short(most) : "0", el("small", {}, some(groups.length, "group"))];
}

function nothing() {
  if (wanted.search || wanted.scope || wanted.tag || wanted.owner || wanted.state) {
    return [el("p", {}, "No stream is like this."),
      el("button", { type: "button", click: clear }, "Show all")];
  }
  if (wanted.after) return [el("p", {}, "There is nothing after this page any more."), el("button", { type: "button", click: clear }, "To the first page")];
  return [el("p", {}, "There is no stream yet."),
    el("p", { class: "muted" }, "Trigger the DAG weir_create_stream, or run ", el("code", {}, "weir create shop/orders --key customer"), " in a terminal.")];
}

function clear() {
  search.value = scope.value = tag.value = owner.value = state.value = "";
  change({ search: "", scope: "", tag: "", owner: "", state: "" });
  search.focus();
}
