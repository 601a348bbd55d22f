// One adjunct store, and a look-up of a key in any of its versions.

import { lacking } from "./about.js";
import { el, replace } from "./dom.js";
import { page } from "./page.js";
import { facts, links, moment, runLink, section, table } from "./parts.js";
import { address, ask, given } from "./rest.js";
import { number, seconds, size, some, span, time } from "./words.js";

const name = given.get("name") ?? "";
const path = `stores/${name.split("/").map(encodeURIComponent).join("/")}`;
const key = el("input", { type: "text", placeholder: "Key", "aria-label": "Key", maxlength: 1000, spellcheck: "false", autocomplete: "off" });
const version = el("input", { type: "number", min: 1, placeholder: "Newest", "aria-label": "Version" });
const found = el("div", { role: "status" });
const form = el("form", { class: "tools", submit: (event) => { event.preventDefault(); lookUp(); } }, key, version, el("button", { type: "submit" }, "Look up"));
const lookup = section("Look up a key", el("p", { class: "muted" }, "As a text: a time in UTC, a number as its column has it. Without a version, the newest is looked into."), form, found);

page({ here: "stores", title: name || "Adjunct store", asks: () => [path, {}], draw, lacks: lacking("adjunct store", ["stores", "All adjunct stores"], name, 2) });

async function lookUp() {
  if (!key.value) return key.focus();
  replace(found, el("p", { class: "muted" }, "Looking …"));
  const where = version.value ? `version ${version.value}` : "the newest version";
  try {
    const { data } = await ask(`${path}/look-up`, { key: key.value, version: version.value });
    replace(found, data.values === null ? el("p", { class: "empty" }, `${where} has no key ${key.value}.`)
      : el("dl", { class: "values" }, data.values.map((one) => [el("dt", {}, one.name === "_clock" ? "clock of its event" : one.name),
        el("dd", {}, one.value ?? el("span", { class: "muted" }, "null"), one.cut && el("small", {}, "It is longer than this."))])));
  } catch (raised) {
    replace(found, el("div", { class: "error", role: "alert" }, el("p", {}, raised.message)));
  }
}

function draw({ store: of, versions, pins }, now) {
  return [
    of.error && el("div", { class: "error" }, el("p", {}, "The last build failed: ", of.error, ` (${time(of.failed_at)})`)),
    links(["Lineage", "lineage", { store: name }]),
    facts([
      ["Stream", el("a", { href: address("stream", { name: of.stream }) }, of.stream), of.stream_deleted && "it is deleted"],
      ["Keys", number(of.row_count), size(of.bytes)],
      ["Complete to", moment(of.complete_to, now), of.version === null ? "no version yet" : `version ${number(of.version)}`],
      ["Behind", of.events_behind ? some(of.events_behind, "event") : "nothing", of.events_behind > 0 && of.time_behind && `for ${span(seconds(of.time_behind))}`],
      ["Builds", of.building ? runLink(of.building) : "nobody is building", `created ${time(of.created_at)}`],
      ["Keeps", `${some(of.versions, "version")}`, `for ${span(seconds(of.keep_versions))}; ${of.history ? `history for ${span(seconds(of.history))}` : "no history"}`],
    ]),
    lookup,
    section("Versions", newest(versions, now)),
    section("Who reads with it now", pinned(pins, now)),
    section(`Definition ${number(of.definition)}`, el("dl", { class: "values" }, [["key", of.key || "the routing key of the stream"], ["value", of.value || "all columns"],
      ["delete when", of.delete_when || "never"], ["layout", of.layout], ["on error", of.on_error], ["on gap", of.on_gap], ["missing", of.missing]].map(([title, value]) =>
      [el("dt", {}, title), el("dd", {}, el("code", {}, value))]))),
  ];
}

function newest(versions, now) {
  return [table([
    { title: "Version", number: true, cell: (one) => [number(one.version), el("small", {}, `definition ${number(one.definition)}`)] },
    { title: "State", cell: (one) => [el("span", { class: `state ${one.state}` }, one.state), el("small", {}, one.base ? `${one.kind}, from ${number(one.base)}` : one.kind)] },
    { title: "Complete to", cell: (one) => moment(one.complete_to, now) },
    { title: "Published", cell: (one) => moment(one.published_at, now) },
    { title: "Took", number: true, cell: (one) => [one.took === null ? "–" : span(seconds(one.took)), one.attempt > 1 && el("small", {}, `attempt ${number(one.attempt)}`)] },
    { title: "Keys", number: true, cell: (one) => [number(one.row_count), one.bytes !== null && el("small", {}, size(one.bytes))] },
    { title: "Events", number: true, cell: (one) => [number(one.events), one.events !== null && el("small", {}, `${number(one.upserts)} set, ${number(one.deletes)} deleted`)] },
    { title: "By", cell: (one) => [runLink(one.builder), one.failed_rows > 0 && el("small", {}, `${number(one.failed_rows)} rows failed`)] },
  ], versions, { caption: "Versions", none: "There is none yet. The DAG weir_adjunct builds one." }),
  versions.length === 50 && el("p", { class: "muted" }, "These are the newest 50; the view weir.adjunct_versions has all.")];
}

function pinned(pins, now) {
  return table([
    { title: "Reader group", cell: (one) => el("a", { href: address("group", { name: one.reader_group }) }, one.reader_group) },
    { title: "Batch", number: true, cell: (one) => number(one.batch_id) },
    { title: "Version", number: true, cell: (one) => number(one.version) },
    { title: "State", cell: (one) => one.state },
    { title: "Since", cell: (one) => moment(one.pinned_at, now) },
  ], pins, { caption: "Pins of open batches", none: "No open batch has pinned a version." });
}
