// The events of a stream: the newest first, up to a time, or of a routing key; its hot keys; and rejected rows, with how
// to put them back.

import { ofStream } from "./about.js";
import { act, bar } from "./acts.js";
import { el, replace } from "./dom.js";
import { page } from "./page.js";
import { moment, section, table } from "./parts.js";
import { address, ask, given } from "./rest.js";
import { number, some, time } from "./words.js";

const name = given.get("name") ?? "";
const path = `streams/${name.split("/").map(encodeURIComponent).join("/")}`;
const rejected = name.endsWith(".rejected") ? name.slice(0, -".rejected".length) : "";
const wanted = { at: given.get("at") ?? "", key: given.get("key") ?? "", condition: given.get("condition") ?? "", before: given.get("before") ?? "" };
const passed = []; // where the pages before this one begin

const at = el("input", { type: "text", "aria-label": "Up to this time (UTC)", placeholder: "Up to this time (UTC): 2026-11-27 09:00", value: wanted.at, maxlength: 40, spellcheck: "false" });
const key = el("input", { type: "search", "aria-label": "Routing key (/)", placeholder: "Of this routing key", value: wanted.key, maxlength: 2000, spellcheck: "false", autocomplete: "off" });
const condition = el("input", { type: "text", "aria-label": "Condition on columns", placeholder: "Condition: amount > 10 and customer = 'C1'", value: wanted.condition, maxlength: 2000, spellcheck: "false", autocomplete: "off" });
const hot = el("div", { role: "status" });
const tools = el("div", {},
  el("p", {}, el("a", { href: address("stream", { name: rejected || name }) }, `To the stream ${rejected || name}`)),
  rejected && mending(),
  el("form", { class: "tools", role: "search", submit: (event) => { event.preventDefault(); look(); } }, at, rejected ? null : key, condition,
    el("button", { type: "submit" }, "Look"),
    el("button", { type: "button", click: () => { at.value = key.value = condition.value = ""; look(); } }, "Newest"),
    !rejected && el("button", { type: "button", click: () => keys() }, "Hot keys")),
  hot);

const shown = page({ here: "streams", title: rejected ? `Rejected rows of ${rejected}` : name ? `Events of ${name}` : "Events", asks: () => [`${path}/events`, wanted], draw, tools, once: true, lacks: ofStream(name) });

function look(changed = {}) {
  passed.length = 0;
  change({ at: at.value.trim(), key: key.value, condition: condition.value.trim(), before: "", ...changed });
}

function change(changed) {
  Object.assign(wanted, changed);
  history.replaceState(null, "", address("events", { name, ...wanted }));
  shown.again();
  scrollTo(0, 0);
}

function searching() {
  return Boolean(wanted.key || wanted.condition);
}

function draw(data, now) {
  const { columns, events, hidden, next, missing, looked, since } = data;
  const older = next && el("button", { type: "button", click: () => { passed.push(wanted.before); change({ before: next }); } }, searching() ? "Look further back" : "Older");
  const newer = passed.length > 0 && el("button", { type: "button", click: () => change({ before: passed.pop() }) }, "Newer");
  const where = [
    { title: "Committed", cell: (one) => [moment(one.committed_at, now), el("small", {}, lineage(one))] },
  ];
  const acts = rejected ? [{ title: "Act", cell: (one) => putBack(one.values[columns.findIndex((column) => column.name === "source")] ?? "") }] : [];
  return [
    missing && el("p", { class: "muted" }, `${missing}.`),
    table([...where, ...acts, ...columns.map((column, i) => ({
      title: `${column.name}, ${column.type}`, number: numeric.test(column.type), cell: (one) => value(one, i, column.type),
    }))], events, { caption: "Events", none: none(data) }),
    hidden.length > 0 && el("p", { class: "muted" }, `Not shown: ${some(hidden.length, "column")} (${hidden.slice(0, 20).join(", ")}${hidden.length > 20 ? " …" : ""}).`),
    el("div", { class: "pages" },
      el("span", { class: "muted" }, searching() ? `${some(looked, "event")} looked through, back to ${time(since)} UTC.` : "The newest first. Long values are cut."), newer, older),
  ];
}

function lineage({ segment, offset }) {
  const title = "what this row was made of, and what was made of it";
  return el("a", { href: address("lineage", { stream: name, segment, offset }), title }, `${segment} @ ${number(offset)}`);
}

const numeric = /^(byte|short|integer|long|float|double|decimal.*)$/;
const whole = /^(byte|short|integer|long|float|double|decimal.*|date|timestamp.*)$/; // of what is never broken

function none({ next }) {
  if (searching()) return next ? "Among the events that were looked through there is none like this; look further back." : wanted.key && !wanted.condition ? "There is no event of this key." : "There is no event like this.";
  if (wanted.at) return "Nothing that is still there was appended by then.";
  return rejected ? "No row was rejected." : "There are no events yet.";
}

function value(event, i, type) {
  const text = event.values[i];
  if (text === null) return el("span", { class: "muted", title: "null: there is no value" }, "null");
  if (text === "") return el("span", { class: "muted", title: "a text without characters" }, "empty");
  return el("span", { class: whole.test(type) ? "value whole" : "value" }, text, event.cut[i] && el("span", { class: "muted" }, ` … ${number(event.cut[i])} characters in all`));
}

function mending() {
  return el("div", { class: "said" }, "These rows did not become events. ",
    el("p", {}, "What an append rejected: correct the rows in their file, or the setting that refuses them, then append them again. What a reader group rejected: mend its function, then put the events back; each is put back once."),
    bar(["Append corrected rows", "ingest", { stream: rejected }], ["Change the stream's settings", "update_stream", { stream: rejected }]));
}

function putBack(source) {
  const group = /^group (\S+), segment /.exec(source);
  return group && act("Put back", "put_back", { reader_group: group[1] });
}

async function keys() {
  replace(hot, el("p", { class: "muted" }, "Looking …"));
  try {
    const { data } = await ask(`${path}/keys`);
    const most = data.keys[0]?.events ?? 1;
    replace(hot, section("Hot keys", el("p", { class: "muted" }, `A sample: the newest ${some(data.sampled, "event")}, since ${time(data.since)} UTC, with ${some(data.distinct, "key")}.`),
      table([
        { title: "Routing key", cell: (one) => (one.key === null ? el("span", { class: "muted" }, "null") : el("button", { type: "button", class: "quiet", click: () => { key.value = one.key; look(); } }, one.key || "empty")) },
        { title: "Events", number: true, cell: (one) => number(one.events) },
        { title: "Share", cell: (one) => [`${((100 * one.events) / data.sampled).toFixed(1)} %`, " ", el("meter", { min: 0, max: most, value: one.events, "aria-hidden": "true" })] },
      ], data.keys, { caption: "Hot keys", none: "There are no events yet." })));
  } catch (raised) {
    replace(hot, el("p", { class: "muted" }, raised.message));
  }
}
