// One reader group.

import { lacking } from "./about.js";
import { act, bar } from "./acts.js";
import { el } from "./dom.js";
import { page } from "./page.js";
import { alerts, facts, health, keys, links, moment, perSecond, runLink, section, table } from "./parts.js";
import { address, given } from "./rest.js";
import { number, seconds, size, some, span, time } from "./words.js";
import { work } from "./work.js";

const name = given.get("name") ?? "";
const path = `groups/${encodeURIComponent(name)}`;
const done = work(path, name); // stays when the page is drawn again

page({ here: "groups", title: name || "Reader group", asks: () => [path, {}], draw, lacks: name ? null : lacking("reader group", ["groups", "All reader groups"], name) });

function draw({ facts: of, catch_up: pace, positions, readers, batches, waiting, checkpoints, held }, now) {
  const unread = of.streams.reduce((all, one) => all + one.unread_events, 0);
  done.again();
  return [
    el("p", { class: "lead" }, health(of.health, now)),
    alerts(of.troubles),
    links(["Lineage", "lineage", { group: name }], ["Its runs", "runs", { reader_group: name }], ["Old and new output", "outputs", { group: name }]),
    bar(
      ["Process", "process", { reader_group: name }],
      ["Checkpoint", "checkpoint_reader_group", { reader_group: name }],
      ["Reset", "reset_reader_group", { reader_group: name }],
      ["Fork or replay", "fork_reader_group", { reader_group: name }],
      of.subscriber && of.release === "manual" && ["Release", "release_reader_group", { reader_group: name }],
      batches.some((one) => one.rejected) && ["Put rejected events back", "put_back", { reader_group: name }],
      ["Change settings", "update_reader_group", { reader_group: name }],
    ),
    facts([
      ["Unread", number(unread), size(of.streams.reduce((all, one) => all + one.unread_bytes, 0))],
      pace && ["Catches up", catches(pace, unread), `in the last hour it read ${pace.read_rate ? perSecond(pace.read_rate) : "nothing"}, and ${pace.append_rate ? perSecond(pace.append_rate) : "nothing"} ${pace.append_rate ? "were" : "was"} appended`],
      ["Readers", number(of.readers), of.open_batches ? some(of.open_batches, "open batch", "open batches") : "none is reading"],
      ["Last active", moment(of.active_at, now), `created ${time(of.created_at)}`],
      ["Checkpoint", of.checkpoint ?? "none", of.checkpoint_at && moment(of.checkpoint_at, now)],
      ["Holds back", of.holds ? "what it has not released" : "nothing", of.holds ? `releases: ${of.release}` : of.subscriber ? "its streams wait for nobody: their retention is not consumed" : "it is no subscriber"],
      (of.aligned || of.max_ahead) && ["Order", of.aligned ? "aligned" : `at most ${span(seconds(of.max_ahead))} ahead`],
      of.subject && ["Subject", of.subject, "the column by which copies are found in what it wrote"],
    ]),
    waiting.length > 0 && section("What waits", blocked(waiting, now)),
    section("Streams", streams(of.streams, now)),
    held.length > 0 && section("What it makes streams keep", kept(held, now)),
    section("Readers", members(readers, now)),
    section("Newest batches", newest(batches, now)),
    done.place,
    section("Positions", places(positions)),
    section("Checkpoints", marks(checkpoints, of, now)),
  ];
}

function catches(pace, unread) {
  if (!unread) return "all is read";
  return pace.catch_up === null ? "not at this pace" : `in ${span(seconds(pace.catch_up))}`;
}

function blocked(found, now) {
  return table([
    { title: "Who", cell: (one) => (one.reader_id ? runLink(one.reader_id) : one.reason) },
    { title: "Because of", cell: (one) => (one.reader_id ? `the setting ${one.reason}` : "an open batch") },
    { title: "Waits for", cell: (one) => [one.waits_for ? runLink(one.waits_for) : "a reader that takes the segment",
      el("small", {}, [one.batch_id !== null && `batch ${number(one.batch_id)}`, one.stream, one.segment].filter(Boolean).join(", "))] },
    { title: "Since", cell: (one) => moment(one.since, now) },
    { title: "Its lease", cell: (one) => (one.lease_expired ? "has expired: another reader may take over" : "is valid") },
  ], found, { caption: "Who waits for whom" });
}

function streams(found, now) {
  return table([
    { title: "Stream", cell: (one) => el("a", { class: "name", href: address("stream", { name: one.stream }), "data-key": one.stream }, one.stream) },
    { title: "Unread", number: true, cell: (one) => number(one.unread_events) },
    { title: "Size", number: true, cell: (one) => size(one.unread_bytes) },
    { title: "Behind since", cell: (one) => moment(one.behind_since, now) },
    { title: "Lost", number: true, cell: (one) => number(one.lost_events) },
  ], found, { caption: "Streams", none: "Its streams are deleted." });
}

function kept(found, now) {
  return table([
    { title: "Stream", cell: (one) => one.stream },
    { title: "Events", number: true, cell: (one) => number(one.held_events) },
    { title: "Size", number: true, cell: (one) => size(one.held_bytes) },
    { title: "Released", cell: (one) => moment(one.released_at, now) },
    { title: "Times out", cell: (one) => (one.timed_out ? el("span", { class: "state failed" }, "it has timed out") : one.times_out_at ? moment(one.times_out_at, now) : "never") },
    { title: "Loses events", cell: (one) => (one.loses_after ? moment(one.loses_after, now) : "never") },
  ], found, { caption: "What it makes streams keep" });
}

function members(found, now) {
  return table([
    { title: "Reader", cell: (one) => runLink(one.reader_id) },
    { title: "Segments", number: true, cell: (one) => number(one.segments) },
    { title: "Unread", number: true, cell: (one) => number(one.unread_events) },
    { title: "Reads", number: true, cell: (one) => (one.read_rate === null ? "–" : perSecond(one.read_rate)) },
    { title: "Batch", number: true, cell: (one) => number(one.batch_id) },
    { title: "Joined", cell: (one) => moment(one.joined_at, now) },
    { title: "Lease", cell: (one) => one.lease_until === null ? "is a streaming query's: does not end"
      : el("span", { class: one.lease_expired ? "state failed" : "" }, new Date(one.lease_until) < 0 ? "was ended" // -infinity
        : [one.lease_expired ? "expired " : "ends ", moment(one.lease_until, now)]) },
  ], found, { caption: "Readers", none: "No reader has joined. The DAG weir_process runs one." });
}

function newest(found, now) {
  return table([
    { title: "Batch", number: true, cell: (one) => number(one.number) },
    { title: "State", cell: (one) => [el("span", { class: `state ${one.state}` }, one.state), one.attempt > 1 && el("small", {}, `attempt ${number(one.attempt)}`)] },
    { title: "Opened", cell: (one) => moment(one.opened_at, now) },
    { title: "Took", number: true, cell: (one) => (one.ended_at ? span((new Date(one.ended_at) - new Date(one.opened_at)) / 1000) : "–") },
    { title: "Events", number: true, cell: (one) => [number(one.events), one.rejected > 0 && el("small", {}, `${number(one.rejected)} rejected`)] },
    { title: "Size", number: true, cell: (one) => size(one.bytes) },
    { title: "By", cell: (one) => [one.reader_id ? runLink(one.reader_id) : "–", el("small", {}, one.error ?? one.function)] },
  ], found, { caption: "Newest batches", none: "It has read nothing yet." });
}

function places(found) {
  return [table([
    { title: "Stream", cell: (one) => one.stream },
    { title: "Segment", cell: (one) => el("code", {}, one.segment) },
    { title: "Keys", cell: (one) => keys(one.key_low, one.key_high) },
    { title: "State", cell: (one) => one.state },
    { title: "Next offset", number: true, cell: (one) => number(one.next_offset) },
    { title: "Unread", number: true, cell: (one) => number(one.unread_events) },
    { title: "Reader", cell: (one) => (one.reader_id ? runLink(one.reader_id) : el("span", { class: "muted" }, "none")) },
  ], found, { caption: "Positions", none: "It has no position." }),
  found.length === 1000 && el("p", { class: "muted" }, "These are the first 1,000; the view weir.positions has all.")];
}

function marks(found, of, now) {
  return table([
    { title: "Checkpoint", cell: (one) => one.name },
    { title: "Kind", cell: (one) => one.kind },
    { title: "State", cell: (one) => one.state },
    { title: "Asked for", cell: (one) => moment(one.created_at, now) },
    { title: "Streams", number: true, cell: (one) => number(one.streams) },
    { title: "Act", cell: (one) => one.state === "complete" && [
      act("Reset to it", "reset_reader_group", { reader_group: name, to: `checkpoint ${one.name}` }),
      act("Fork at it", "fork_reader_group", { reader_group: name, at: `checkpoint ${one.name}` }),
      of.subscriber && of.release === "manual" && act("Release up to it", "release_reader_group", { reader_group: name, at: `checkpoint ${one.name}` })] },
  ], found, { caption: "Checkpoints", none: "There is none. The DAG weir_checkpoint_reader_group makes one." });
}
