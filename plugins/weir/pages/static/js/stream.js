// One stream.

import { ofStream } from "./about.js";
import { act, bar } from "./acts.js";
import { chart } from "./chart.js";
import { el } from "./dom.js";
import { map } from "./map.js";
import { page } from "./page.js";
import { alerts, facts, health, links, moment, rate, runLink, section, table } from "./parts.js";
import { address, given } from "./rest.js";
import { number, size, some, time } from "./words.js";

const name = given.get("name") ?? "";
const path = `streams/${name.split("/").map(encodeURIComponent).join("/")}`;
const keyMap = map(path); // stays, with its zoom, when the page is drawn again

page({
  here: "streams",
  title: name || "Stream",
  asks: () => [path, {}],
  draw,
  lacks: ofStream(name),
});

function draw({ facts: of, settings, rejected, columns, transactions, files, retention, scaling, documents, completeness, tables }, now) {
  requestAnimationFrame(keyMap.again); // then it has a width
  return [
    el("p", { class: "lead" }, health(of.health, now)),
    alerts(of.troubles),
    links(
      ["Events", "events", { name }],
      ["Files", "files", { name }],
      rejected && ["Rejected rows", "events", { name: rejected }],
      ["Lineage", "lineage", { stream: name }],
      ["Its runs", "runs", { stream: name }],
      ...tables.map((one) => [one.title, "table", { of: one.name, stream: name }]),
    ),
    bar(
      of.state === "active" && ["Append files", "ingest", { stream: name }],
      of.state === "active" && ["Scale", "scale_stream", { stream: name }],
      ["Read it with a new group", "create_reader_group", { streams: [name] }],
      ["Truncate", "truncate_stream", { stream: name }],
      ["Erase", "erase", { stream: name }],
      ["Compact", "compact", { streams: [name] }],
      ["Change settings", "update_stream", { stream: name }],
      of.state === "active" && ["Seal", "seal_stream", { stream: name }],
    ),
    facts([
      ["Events", number(of.events), of.appended > of.events && `${number(of.appended)} were appended in all`],
      ["Size", size(of.bytes), files.more ? `more than ${some(files.files, "file")}` : `${some(files.files, "file")}, ${number(files.small_files)} small`],
      ["Rate", rate(of.activity)],
      ["Segments", number(of.segments), settings.scaling === "fixed" ? "their number is fixed" : `scaled by ${settings.scaling.replace("_", " ")}`],
      ["Routing key", el("code", {}, of.routing_key)],
      ["Keeps", of.retention],
      ["State", of.state, `created ${time(of.created_at)}`],
      completeness && ["Complete until", time(completeness.complete_until), `by ${completeness.event_time}; ${some(completeness.late_events, "late event")}`],
    ]),
    section("Appends", appended(of.activity)),
    section("Key space over time", keyMap.place),
    section("Who reads it", groups(of.groups, now)),
    section("Newest transactions", newest(transactions, now)),
    section("Columns", schema(columns)),
    section("What retention decided", decisions(retention, now)),
    settings.scaling !== "fixed" && section("What scaling decided", scales(scaling, now)),
    ...[...new Set(documents.map((one) => one.title))].map((title) =>
      section(title, documented(title, documents.filter((one) => one.title === title), now))),
    section("Files", compaction(files, now)),
  ];
}

function appended(activity) {
  if (!activity.events.some(Boolean)) return el("p", { class: "empty" }, "Nothing was appended in the last 7 days.");
  const since = new Date(activity.since) / 1000;
  const part = (new Date(activity.until) / 1000 - since) / activity.events.length;
  // One time more than parts, where the last one ends.
  return chart([[...activity.events, 0].map((_, i) => since + i * part), [...activity.events, null]], [{ label: "events", bars: true }], { title: "Events that were appended, over time" });
}

function groups(found, now) {
  return table([
    { title: "Reader group", cell: (one) => el("a", { class: "name", href: address("group", { name: one.reader_group }), "data-key": one.reader_group }, one.reader_group) },
    { title: "Unread", number: true, cell: (one) => number(one.unread_events) },
    { title: "Size", number: true, cell: (one) => size(one.unread_bytes) },
    { title: "Behind since", cell: (one) => moment(one.behind_since, now) },
    { title: "Lost", number: true, cell: (one) => number(one.lost_events) },
  ], found, { caption: "Reader groups", none: "No group reads it. The DAG weir_create_reader_group makes one." });
}

function newest(found, now) {
  return table([
    { title: "Number", number: true, cell: (one) => number(one.number) },
    { title: "State", cell: (one) => el("span", { class: `state ${one.state}` }, one.state) },
    { title: "Committed", cell: (one) => moment(one.committed_at, now) },
    { title: "Events", number: true, cell: (one) => [number(one.events), one.rejected > 0 && el("small", {}, `${number(one.rejected)} rejected`)] },
    { title: "Size", number: true, cell: (one) => size(one.bytes) },
    { title: "Files", number: true, cell: (one) => number(one.files) },
    { title: "By", cell: (one) => [runLink(one.source), el("small", {}, `${one.writer_id}, ${one.batch_id}`)] },
    { title: "Act", cell: (one) => one.committed_at && [
      act("Replay after it", "create_reader_group", { streams: [name], start: `time ${one.committed_at}` }),
      act("Truncate up to it", "truncate_stream", { stream: name, cut: `time ${one.committed_at}` })] },
  ], found, { caption: "Newest transactions", none: "Nothing was appended yet. The DAG weir_ingest appends files." });
}

function schema(columns) {
  const newest = columns.filter((one) => one.newest);
  const changes = columns.filter((one) => one.change);
  return [
    table([
      { title: "Column", cell: (one) => el("code", {}, one.name) },
      { title: "Type", cell: (one) => (typeof one.type === "string" ? one.type : el("code", {}, JSON.stringify(one.type))) },
      { title: "Default", cell: (one) => one.default_value ?? "" },
      { title: "Since version", number: true, cell: (one) => number(Math.min(...columns.filter((other) => other.name === one.name).map((other) => other.version))) },
    ], newest, { caption: "Columns", none: "The first append says which columns it has." }),
    changes.length > 0 && el("ul", { class: "changes" }, changes.map((one) =>
      el("li", {}, `Version ${one.version}, ${time(one.created_at)}: `, el("code", {}, one.name), ` ${one.change}`))),
  ];
}

function decisions(found, now) {
  return table([
    { title: "When", cell: (one) => moment(one.decided_at, now) },
    { title: "Truncated", number: true, cell: (one) => (one.events ? [number(one.events), el("small", {}, size(one.bytes))] : "nothing") },
    { title: "Why", cell: (one) => one.reason },
    { title: "Held by", cell: (one) => one.held_by.join(", ") },
  ], found, { caption: "Decisions of retention", none: "Retention has decided nothing yet; the DAG weir_retention runs it." });
}

function scales(found, now) {
  return table([
    { title: "When", cell: (one) => moment(one.decided_at, now) },
    { title: "Action", cell: (one) => one.action },
    { title: "Why", cell: (one) => one.reason },
  ], found, { caption: "Decisions of scaling", none: "Scaling has decided nothing yet." });
}

function documented(title, found, now) {
  return table([
    { title: "When", cell: (one) => moment(one.asked_at, now) },
    { title: "Events", number: true, cell: (one) => [number(one.events), one.streams > 1 && el("small", {}, `of ${number(one.streams)} streams`)] },
    { title: "Why", cell: (one) => [one.reason, el("small", {}, runLink(one.request))] },
    { title: "By", cell: (one) => (one.requested_by === one.request ? "" : one.requested_by) },
    { title: "Document", cell: (one) => (one.document
      ? [el("a", { download: one.file, href: `data:application/json,${encodeURIComponent(JSON.stringify(one.document, null, 1))}` }, one.file), el("small", {}, [`${one.state} `, moment(one.made_at, now)])]
      : `waits for ${one.waits_for.join(", ")}`) },
  ], found, { caption: title, none: "" });
}

function compaction(files, now) {
  if (!files.files) return el("p", { class: "empty" }, "There are no files yet.");
  const small = files.more ? "So many are not looked at here."
    : files.files === 1 ? (files.small_files ? "It is small." : "It is not small.")
    : files.small_files === 1 ? `One of them is small, ${size(files.small_bytes)}.`
    : files.small_files
    ? `${some(files.small_files, "small file")} of ${size(files.small_bytes)} may be put together${files.apart ? `, but ${files.apart}` : ""}.`
    : "None of them is small.";
  return el("p", {}, files.more && "More than ", el("a", { href: address("files", { name }) }, some(files.files, "file")), `. ${small} `,
    files.last_compacted && ["Last compacted ", moment(files.last_compacted, now), "."]);
}
