// What a reader group has done over time, and what it costs. `work(path, group)` returns { place, again }: the place stays
// when the page is drawn again.

import { chart, unreadOf } from "./chart.js";
import { el, replace } from "./dom.js";
import { moment, section, table } from "./parts.js";
import { address, ask } from "./rest.js";
import { number, size, some, span, time } from "./words.js";

export function work(path, group) {
  const drawn = el("div", {});
  const cost = el("div", { role: "status" });
  let tag = null;

  async function again() {
    try {
      const found = await ask(`${path}/work`);
      if (found.tag === tag) return;
      tag = found.tag;
      replace(drawn, draw(found.data, found.at, group));
    } catch { /* the page itself says what is wrong */ }
  }

  async function costs() {
    replace(cost, el("p", { class: "muted" }, "Adding up …"));
    try {
      const { data, at } = await ask(`${path}/cost`);
      replace(cost, told(data.costs, at));
    } catch (raised) {
      replace(cost, el("p", { class: "muted" }, raised.message));
    }
  }

  const place = el("div", {}, drawn, el("p", {}, el("button", { type: "button", click: costs }, "What does it cost?")), cost);
  return { place, again };
}

function draw({ unread, batches, completeness, folders }, now, group) {
  const at = batches.map((one) => new Date(one.opened_at) / 1000);
  const again = batches.filter((one) => one.attempt > 1).length;
  const failed = batches.filter((one) => one.state !== "committed").length;
  const lost = batches.reduce((all, one) => all + (one.rejected ?? 0), 0);
  return [
    unread.length > 0 && section("Unread over time", unread.map(unreadOf)),
    batches.length > 1 && el("section", {}, el("h2", {}, "Batches over time"),
      el("p", {}, `Of the newest ${number(batches.length)}, ${some(again, "batch", "batches")} took more than one attempt, ${number(failed)} did not commit, and ${some(lost, "event")} were rejected.`),
      el("h3", {}, "How long a batch took"),
      chart([at, batches.map((one) => one.seconds)], [{ label: "took" }], { title: "Seconds that each batch took, over time", height: 120, said: span, axis: span }),
      el("h3", {}, "Events of a batch"),
      chart([at, batches.map((one) => one.events)], [{ label: "events" }], { title: "Events of each batch, over time", height: 120 })),
    completeness.length > 0 && section("Complete up to", table([
      { title: "Stream", cell: (one) => one.stream },
      { title: "The group has read", cell: (one) => (one.complete_until ? time(one.complete_until) : "not known") },
      { title: "The stream is complete", cell: (one) => (one.stream_complete_until ? time(one.stream_complete_until) : "not known") },
      { title: "Newest event time read", cell: (one) => (one.newest_event_time ? time(one.newest_event_time) : "none") },
    ], completeness, { caption: "Complete up to which event time" })),
    folders.length > 0 && section("Newest Parquet results", table([
      { title: "Output", cell: (one) => one.output },
      { title: "Batch", number: true, cell: (one) => number(one.batch) },
      { title: "Committed", cell: (one) => moment(one.committed_at, now) },
      { title: "Folder", cell: (one) => el("code", {}, one.path) },
      { title: "Changed", cell: (one) => el("a", { class: "act", href: address("outputs", { group, batch: one.batch, output: `parquet:${one.output}` }) }, "Compare") },
    ], folders, { caption: "Newest Parquet results" })),
  ];
}

function told(costs, now) {
  const [first] = costs;
  return [
    table([
      { title: "Function", cell: (one) => one.function ?? "a program's own" },
      { title: "Since", cell: (one) => moment(one.since, now) },
      { title: "Batches", number: true, cell: (one) => [number(one.batches), one.attempts > one.batches && el("small", {}, some(one.attempts, "attempt"))] },
      { title: "Events", number: true, cell: (one) => number(one.events) },
      { title: "Open for", number: true, cell: (one) => (one.seconds === null ? "–" : span(one.seconds)) },
      { title: "Read", number: true, cell: (one) => size(one.read_bytes) },
      { title: "Written to streams", number: true, cell: (one) => size(one.written_bytes) },
    ], costs.filter((one) => one.batches), { caption: "What it costs", none: "It has read nothing that is still recorded." }),
    first && el("p", {}, first.kept_bytes
      ? `It makes streams keep ${size(first.kept_bytes)}, of which ${size(first.kept_alone_bytes)} for nobody else.` : "It makes no stream keep anything."),
  ];
}
