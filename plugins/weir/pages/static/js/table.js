// A view of the database as a table: of all streams, or of one.

import { lacking, ofStream } from "./about.js";
import { el } from "./dom.js";
import { page } from "./page.js";
import { moment, pager, runLink, table } from "./parts.js";
import { address, ask, given } from "./rest.js";
import { number, seconds, size, some, span } from "./words.js";

const wanted = { of: given.get("of") ?? "", stream: given.get("stream") ?? "", after: given.get("after") ?? "" };
const before = []; // where the pages before this one begin
const HOURS = { complete: "complete", events: "has events, and is not complete yet", missing: "complete, and has no event", ahead: "to come", none: "has no event", "not known": "not known: among the newest appends there is none" };

const stream = el("input", {
  type: "search", placeholder: "Of one stream: shop/orders", "aria-label": "Of one stream (/)", value: wanted.stream, maxlength: 140,
  spellcheck: "false", autocomplete: "off", change: () => { before.length = 0; change({ stream: stream.value.trim(), after: "" }); },
});

const shown = page({
  here: "tables",
  title: titled(wanted.of),
  asks: () => [`tables/${encodeURIComponent(wanted.of)}`, { stream: wanted.stream, after: wanted.after }],
  draw,
  tools: el("div", { class: "tools", role: "search" }, stream),
  lacks: wanted.of ? wanted.stream && ofStream(wanted.stream) : lacking("table", ["tables", "All tables"], ""),
});

function titled(name) {
  return name ? name.charAt(0).toUpperCase() + name.slice(1) : "Table";
}

function change(changed) {
  Object.assign(wanted, changed);
  history.replaceState(null, "", address("table", wanted));
  shown.again();
}

let walk = 0; // which answer is being continued: a later one takes its place

// Draw an answer; where it looked at some streams and found nothing, look on.
function draw(data, now) {
  const place = el("div", {});
  const mine = (walk += 1);
  document.querySelector("h1").textContent = wanted.stream ? `${data.title} of ${wanted.stream}` : data.title;
  document.querySelector(".tools").hidden = data.of_stream;
  place.replaceChildren(...content(data, now));
  if (!data.rows.length && data.next) follow(place, data, mine);
  return place;
}

async function follow(place, data, mine) {
  try {
    while (!data.rows.length && data.next && mine === walk) {
      const answer = await ask(`tables/${encodeURIComponent(wanted.of)}`, { stream: wanted.stream, after: data.next });
      data = answer.data;
      if (mine === walk) place.replaceChildren(...content(data, answer.at));
    }
  } catch (raised) {
    if (mine === walk) place.prepend(el("div", { class: "error", role: "alert" }, el("p", {}, raised.message)));
  }
}

function content(data, now) {
  const { title, about, none, columns, rows, next } = data;
  const hours = columns.some((one) => one.kind === "hours");
  return [
    el("p", { class: "lead muted" }, about),
    ...(hours ? [legend()] : []),
    table(columns.map((one, i) => ({
      title: one.title, number: ["number", "size"].includes(one.kind), wide: ["reason", "message", "what", "advice", "freed_by", "problem", "metadata_location"].includes(one.name), cell: (row) => cell(one, row[i], now),
    })), rows, { caption: title, none: rows.length || !next ? none : `None up to ${next}; it goes on …` }),
    (next || before.length > 0) && pager({ here: rows.length, total: null, what: "row", even: false, before, after: wanted.after, next, go: (after) => change({ after }) }),
  ].filter(Boolean);
}

function cell({ name, kind }, value, now) {
  if (value === null) return "–";
  if (kind === "number") return number(value);
  if (kind === "size") return size(value);
  if (kind === "time") return moment(value, now);
  if (kind === "span") return span(seconds(value));
  if (kind === "flag") return value ? "yes" : "no";
  if (kind === "hours") return days(value);
  if (kind === "run") return runLink(value);
  if (kind === "stream") return el("a", { class: "name", href: address("stream", { name: value }) }, value);
  if (kind === "group") return el("a", { href: address("group", { name: value }) }, value);
  if (Array.isArray(value)) return value.length ? value.map((one) => el("div", {}, typeof one === "string" ? one : JSON.stringify(one))) : "–";
  if (typeof value === "object") return el("a", { download: `${name}.json`, href: `data:application/json,${encodeURIComponent(JSON.stringify(value, null, 1))}` }, `${name}.json`);
  return String(value);
}

function days(hours) {
  const missing = hours.filter((one) => one === "missing").length;
  return [
    el("span", { class: "hours", role: "img", "aria-label": said(hours) },
      hours.map((one, i) => el("span", { class: `hour ${one.replace(" ", "-")}`, title: `${String(i).padStart(2, "0")}:00: ${HOURS[one]}` }))),
    missing > 0 && el("small", {}, `${some(missing, "hour")} missing`),
  ];
}

function said(hours) {
  return Object.keys(HOURS).map((what) => [hours.filter((one) => one === what).length, HOURS[what]])
    .filter(([count]) => count).map(([count, what]) => `${some(count, "hour")} ${what}`).join(", ");
}

function legend() {
  return el("p", { class: "hours legend" }, Object.entries(HOURS).map(([what, text]) => el("span", {}, el("span", { class: `hour ${what.replace(" ", "-")}` }), ` ${text} `)));
}
