// The key space of a stream over time: what came where, what changed, and who is how far.

import { act } from "./acts.js";
import { el, replace } from "./dom.js";
import { drawn, keyAt, sign, timeAt } from "./map_picture.js";
import { keys, perSecond, table } from "./parts.js";
import { ask, Refused } from "./rest.js";
import { number, short, some, time } from "./words.js";

const CHANGES = { scale: "scale by hand", policy: "scale by the policy", roll: "roll", cut: "recorded cut" };
const HELP = "Left and right move in time, plus and minus zoom, 0 shows all; up and down go from segment to segment and say its numbers.";
const LEAST = 1000; // milliseconds that are shown at least

// A map that keeps its zoom. Returns { place, again }: an element, and a function that asks again. found: an answer in a
// file, which is all that there is to see and where nothing can be done.
export function map(path, found = null) {
  const says = el("p", { class: "map-says", role: "status" });
  const picture = el("div", { class: "map", tabindex: "0", role: "group", "aria-label": `Key space over time. ${HELP}`, "data-key": "map",
    keydown, wheel, pointerdown, pointermove, pointerup, pointercancel: pointerup, pointerleave });
  const legend = el("div", { class: "legend" });
  const more = el("div", {});
  const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, click: act }, text);
  const place = el("div", {},
    el("div", { class: "tools" }, button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)),
      button("←", "Earlier", () => pan(-0.25)), button("→", "Later", () => pan(0.25)), button("All", "Show all", () => show(-Infinity, Infinity))),
    picture, says, legend, more);

  let data = null; // the last answer
  let tag = null; // of it
  let shown = null; // [since, until] in milliseconds; null: all that there is, also when there is more
  let asking = null;
  let soon = null; // when to ask, once a wheel is at rest
  let chosen = null; // { area, at }: what the numbers are about
  let pinned = false; // whether it stays when the pointer goes away, as after a click
  let held = null; // a drag: where it began, and what was shown then
  const hidden = new Set(); // names of lines; "" is the head

  async function again() {
    clearTimeout(soon);
    asking?.abort();
    asking = new AbortController();
    const [since, until] = (shown ?? []).map((one) => new Date(one).toISOString());
    const width = Math.max(100, Math.min(10_000, Math.round(picture.clientWidth) || 1000));
    try {
      const answer = found ? { data: found, tag: "file" } : await ask(`${path}/map`, { since, until, width }, asking.signal);
      if (answer.tag === tag) return;
      const before = chosen && data.areas[chosen.area];
      [data, tag] = [answer.data, answer.tag];
      if (before) chosen.area = data.areas.findIndex((one) => one.segment === before.segment && one.key_low === before.key_low);
      draw();
      list();
    } catch (raised) {
      if (raised.name === "AbortError") return;
      if (!(raised instanceof Refused)) console.error(raised);
      says.textContent = raised instanceof Refused ? raised.message : `The map has a defect: ${raised.message}`;
    }
  }

  const all = () => (found ? [data.since, data.until] : [data.begins, data.ends]).map(Date.parse);
  const bounds = () => shown ?? all();

  // Show a time: at once what is known of it, and then a finer answer.
  function show(since, until) {
    if (!data) return;
    const [begins, ends] = all();
    const length = Math.max(LEAST, Math.min(until - since, ends - begins));
    const from = Math.max(begins, Math.min(since, ends - length));
    shown = length >= ends - begins ? null : [from, from + length];
    draw();
    clearTimeout(soon);
    if (!held) soon = setTimeout(again, 120);
  }
  function zoom(factor, about = 0.5) {
    if (!data) return;
    const [since, until] = bounds();
    const at = since + about * (until - since);
    const length = Math.max(LEAST, (until - since) * factor);
    show(at - about * length, at + (1 - about) * length);
  }
  function pan(share, [since, until] = data ? bounds() : []) {
    show(since + share * (until - since), until + share * (until - since));
  }

  function keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !data) return;
    const act = {
      ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
      0: () => show(-Infinity, Infinity), ArrowUp: () => step(1), ArrowDown: () => step(-1), Escape: () => pin(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
  // With Ctrl, as otherwise nobody could scroll past the map.
  function wheel(event) {
    if (!event.ctrlKey || !data) return;
    event.preventDefault();
    const [since, until] = bounds();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, (timeAt(picture, event, since, until) - since) / (until - since))));
  }
  function pointerdown(event) {
    if (!data || event.button) return;
    held = { x: event.clientX, bounds: bounds() };
    picture.setPointerCapture(event.pointerId);
  }
  function pointermove(event) {
    if (!data) return;
    const [since, until] = bounds();
    if (held) {
      const [from, to] = held.bounds;
      const moved = timeAt(picture, { clientX: held.x }, from, to) - timeAt(picture, event, from, to);
      if (shown) pan(moved / (to - from), held.bounds);
      return;
    }
    if (!pinned) choose(under(event, since, until));
  }
  function under(event, since, until) {
    const [at, key] = [timeAt(picture, event, since, until), keyAt(picture, event)];
    const area = data.areas.findIndex((one) => one.key_low <= key && key < one.key_high && Date.parse(one.since) <= at && at < Date.parse(one.until));
    return area < 0 ? null : { area, at, key };
  }
  function pointerup(event) {
    const moved = held && shown && held.bounds[0] !== shown[0];
    if (held && !moved && Math.abs(event.clientX - held.x) < 3) pin(under(event, ...bounds()));
    held = null;
    if (moved) again();
  }
  function pointerleave() {
    if (!held && !pinned && document.activeElement !== picture) choose(null);
  }
  function pin(found) {
    pinned = found !== null;
    choose(found);
  }

  function step(by) {
    const many = data.areas.length;
    if (many) choose({ area: ((chosen?.area ?? (by > 0 ? -1 : 0)) + by + many) % many, at: null });
  }
  function choose(found) {
    chosen = found;
    replace(says, tell(), links());
    picture.querySelector(".chosen")?.classList.remove("chosen");
    if (chosen) picture.querySelector(`[data-area="${chosen.area}"]`)?.classList.add("chosen");
  }

  // What can be done there: of a segment that takes events, and up to the time that was clicked at.
  function links() {
    const one = chosen && data.areas[chosen.area];
    if (!one || found) return [];
    const cut = pinned && chosen.at !== null && `time ${new Date(chosen.at).toISOString()}`;
    return [
      one.segment && one.until === data.ends && act("Scale it", "scale_stream", { stream: data.stream, segments: [one.segment] }),
      cut && act("Truncate up to here", "truncate_stream", { stream: data.stream, cut }),
      cut && act("Read from here with a new group", "create_reader_group", { streams: [data.stream], start: cut }),
    ].filter(Boolean).map((link) => [" ", link]);
  }

  // The numbers of what was chosen, and who stands where in these keys.
  function tell() {
    const one = chosen && data.areas[chosen.area];
    if (!one) return `Point at the map for its numbers. ${found ? "Click to keep them" : "Click to act there"}, drag to move in time; Ctrl and the wheel zoom.`;
    const at = chosen.at;
    const parts = at === null ? one.parts : one.parts.filter((part) => Date.parse(part.since) <= at && at < Date.parse(part.until));
    const most = parts.reduce((found, part) => (found && rateOf(found) >= rateOf(part) ? found : part), null);
    const came = most ? `${at === null ? "at most " : ""}${perSecond(rateOf(most))} from ${time(most.since)} to ${time(most.until)}` : at === null ? "nothing came in these times" : `nothing came at ${time(at)}`;
    const key = chosen.key ?? (one.key_low + one.key_high) / 2;
    const where = visible().map((line) => [nameOf(line), line.points.find((point) => point.key_low <= key && key < point.key_high)])
      .filter(([, point]) => point).map(([name, point]) => `${name} at ${point.at === data.ends ? "the end" : time(point.at)}`);
    return `${areaName(one)}, keys ${keys(one.key_low, one.key_high)}: ${some(Math.round(one.events), "event")}${one.segment ? "" : " in these times"}; ${came} UTC. ${where.length ? `Here: ${where.join(", ")}.` : ""}`;
  }

  const visible = () => data.lines.filter((one) => !hidden.has(one.reader_group ?? ""));

  function draw() {
    if (!data) return;
    const [since, until] = bounds();
    replace(picture, drawn(data, since, until, Math.max(200, picture.clientWidth), { hidden, chosen: chosen?.area, changes: CHANGES }));
    replace(says, tell(), links());
  }

  // What is below the map: what colours mean, switches of the lines, and the same as a table.
  function list() {
    const kinds = [...new Set(data.marks.map((one) => one.kind))];
    replace(legend,
      el("ul", { "aria-label": "Colours: rates of events" },
        data.levels.map((one) => el("li", {}, sign(one.kind), one.words)),
        kinds.map((kind) => el("li", {}, sign(`mark ${kind}`), CHANGES[kind]))),
      el("div", { class: "lines", role: "group", "aria-label": "Lines on the map" }, data.lines.map((one, i) => {
        const name = one.reader_group ?? "";
        return el("label", {}, el("input", { type: "checkbox", checked: !hidden.has(name), "data-key": `line ${name}`, change: (event) => {
          if (event.target.checked) hidden.delete(name);
          else hidden.add(name);
          draw();
        } }), sign(name ? `position p${(i - 1) % 6}` : "head"), nameOf(one));
      })));
    const open = more.querySelector("details")?.open;
    replace(more,
      !data.areas.some((one) => one.events > 0) && el("p", { class: "empty" }, "Nothing came in these times. The DAG weir_ingest appends files; then their rates are colours here."),
      data.aggregated && el("p", { class: "muted" }, `There are so many segments that they share ${data.areas.length} rows; a rate is that of a row. Zoom in for segments.`),
      el("details", { open }, el("summary", {}, "The map as tables"),
        table([
          { title: "Segment", cell: areaName },
          { title: "Keys", cell: (one) => keys(one.key_low, one.key_high) },
          { title: "From", cell: (one) => time(one.since) },
          { title: "To", cell: (one) => time(one.until) },
          { title: "Events", number: true, cell: (one) => number(Math.round(one.events)) },
          { title: "Highest rate", number: true, cell: (one) => perSecond(Math.max(0, ...one.parts.map(rateOf))) },
        ], data.areas, { caption: "Segments" }),
        table([
          { title: "Line", cell: nameOf },
          { title: "Least far", cell: (one) => time(ends(one)[0]) },
          { title: "Farthest", cell: (one) => time(ends(one)[1]) },
        ], data.lines.filter((one) => one.points.length), { caption: "Positions" }),
        table([
          { title: "Change", cell: (one) => some(one.number, CHANGES[one.kind], `${CHANGES[one.kind].replace(/^(\w+)/, "$1s")}`) },
          { title: "When", cell: (one) => time(one.at) },
        ], data.marks, { caption: "Changes", none: "Nothing changed in these times." })));
  }

  new ResizeObserver(draw).observe(picture);
  return { place, again };
}

function rateOf(part) {
  return part.events / Math.max(1e-6, (Date.parse(part.until) - Date.parse(part.since)) / 1000);
}

function ends(line) {
  const times = line.points.map((one) => one.at).sort();
  return [times[0], times.at(-1)];
}

function nameOf(line) {
  return line.reader_group ?? "the head";
}

function areaName(area) {
  return area.segment ? `Segment ${area.segment}` : some(area.segments, "segment");
}
