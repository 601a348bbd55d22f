// The files of a stream, what compaction would do with them, and why any of them is still there.

import { ofStream } from "./about.js";
import { bar } from "./acts.js";
import { el, replace } from "./dom.js";
import { page } from "./page.js";
import { moment, pager, section, table } from "./parts.js";
import { address, ask, given } from "./rest.js";
import { number, size, some } from "./words.js";

const name = given.get("name") ?? "";
const path = `streams/${name.split("/").map(encodeURIComponent).join("/")}`;
const wanted = { segment: given.get("segment") ?? "", after: given.get("after") ?? "" };
const before = []; // where the pages before this one begin

const kept = el("div", { role: "status" });
const compacted = el("div", { role: "status" });
const questions = el("div", {},
  el("p", {}, el("a", { href: address("stream", { name }) }, `To the stream ${name}`)),
  el("div", { class: "tools" },
    el("button", { type: "button", click: () => tell(kept, "why", reasons) }, "Why are they still here?"),
    el("button", { type: "button", click: () => tell(compacted, "compaction", compaction) }, "What would compaction do?")),
  kept, compacted);

const shown = page({ here: "streams", title: name ? `Files of ${name}` : "Files", asks: () => [`${path}/files`, wanted], draw, tools: questions, once: true, lacks: ofStream(name) });

// Ask something that takes a while only when somebody wants to know it.
async function tell(place, what, words, query = {}) {
  replace(place, el("p", { class: "muted" }, "Looking …"));
  try {
    const { data } = await ask(`${path}/${what}`, query);
    replace(place, words(data));
  } catch (raised) {
    replace(place, el("p", { class: "muted" }, raised.message));
  }
}

function reasons({ reasons: found }) {
  return section("Why they are here", table([
    { title: "Files", number: true, cell: (one) => number(one.files) },
    { title: "Events", number: true, cell: (one) => number(one.events) },
    { title: "Size", number: true, cell: (one) => size(one.bytes) },
    { title: "Why", cell: (one) => one.why },
  ], found, { caption: "Why files are here", none: "There are no files." }));
}

function compaction(would) {
  const among = would.among && `Looked for in the first ${some(would.among, "file")} only. `;
  if (!would.files_before) return el("p", {}, among, "Compaction would do nothing: no neighbours fit into one file.");
  return el("div", {}, el("p", {}, among, `Compaction would put ${some(would.files_before, "file")} with ${some(would.events, "event")} (${size(would.bytes)}) together into ${some(would.files_after, "file")}, if they store columns alike. Readers see nothing of it.`),
    bar(["Compact", "compact", { streams: [name] }]));
}

function change(changed) {
  Object.assign(wanted, changed);
  history.replaceState(null, "", address("files", { name, ...wanted }));
  shown.again();
}

function draw({ files, total, next }, now) {
  return [
    wanted.segment && el("p", {}, "Of segment ", el("code", {}, wanted.segment), ". ",
      el("button", { type: "button", class: "quiet", click: () => { before.length = 0; change({ segment: "", after: "" }); } }, "Show all segments")),
    table([
      { title: "Segment", cell: (one) => el("button", { type: "button", class: "quiet", title: "Only this segment", click: () => { before.length = 0; change({ segment: one.segment, after: "" }); } }, one.segment) },
      { title: "Offsets", cell: (one) => `${number(one.start_offset)} – ${number(one.end_offset - 1)}` },
      { title: "Events", number: true, cell: (one) => number(one.events) },
      { title: "Size", number: true, cell: (one) => size(one.bytes) },
      { title: "Committed", cell: (one) => [moment(one.last_clock, now), one.first_clock !== one.last_clock && el("small", {}, "from ", moment(one.first_clock, now), " on")] },
      { title: "By", cell: (one) => (one.transaction_number === null ? "compaction" : `transaction ${number(one.transaction_number)}`) },
      { title: "Why is it here?", cell: (one) => why(one) },
    ], files, { caption: "Files", none: "There are no files yet." }),
    files.length > 0 && pager({ here: files.length, total, what: "file", before, after: wanted.after, next, go: (after) => change({ after }) }),
  ];
}

function why(file) {
  const place = el("span", { role: "status" });
  return [el("button", { type: "button", "data-key": file.path, "aria-label": `Why is ${file.path} here?`, click: () => tell(place, "why", (data) => data.reasons.map((one) => el("span", {}, one.why)), { path: file.path }) }, "Why?"),
    " ", place, el("small", {}, el("code", {}, file.path))];
}
