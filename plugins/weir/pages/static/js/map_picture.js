// The picture of a map, as SVG: rectangles of rates, lines of positions, marks of changes.

import { svg } from "./dom.js";
import { some, time } from "./words.js";

const HIGH = 340;
const EDGE = { left: 40, right: 14, top: 18, bottom: 24 };
const ROUND = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 2592000, 7776000, 31536000];

const inner = (wide) => wide - EDGE.left - EDGE.right;

// Where a pointer is: a time, and a part of the key space.
export function timeAt(place, event, since, until) {
  const box = place.getBoundingClientRect();
  return since + ((event.clientX - box.left - EDGE.left) / inner(box.width)) * (until - since);
}
export function keyAt(place, event) {
  return 1 - (event.clientY - place.getBoundingClientRect().top - EDGE.top) / (HIGH - EDGE.top - EDGE.bottom);
}

// What is between two times (milliseconds) of an answer, which may be of other times.
export function drawn(data, since, until, wide, { hidden, chosen, changes }) {
  const [across, down] = [inner(wide), HIGH - EDGE.top - EDGE.bottom];
  const milliseconds = (at) => (typeof at === "number" ? at : Date.parse(at));
  const x = (at) => Math.max(-5, Math.min(across + 5, ((milliseconds(at) - since) / (until - since)) * across));
  const y = (key) => (1 - key) * down;
  const box = (kind, from, to, low, high, given = {}) => {
    const [left, right] = [x(from), x(to)];
    return right > -5 && left < across + 5 && svg("rect", { class: kind, x: left.toFixed(1), y: y(high).toFixed(1), width: Math.max(0.6, right - left).toFixed(1), height: Math.max(0.6, y(low) - y(high)).toFixed(1), ...given });
  };
  const lines = data.lines.map((one, i) => ({ ...one, kind: one.reader_group === null ? "head" : `position p${(i - 1) % 6}` }))
    .filter((one) => !hidden.has(one.reader_group ?? "") && one.points.length);
  const head = lines.find((one) => one.reader_group === null);
  const truncated = head?.points.some((one) => milliseconds(one.at) > Date.parse(data.begins));
  const path = (one) => one.points.map((point, i) => `${i ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point.key_low).toFixed(1)}V${y(point.key_high).toFixed(1)}`).join("");
  const marks = data.marks.filter((one) => milliseconds(one.at) >= since && milliseconds(one.at) <= until);
  return svg("svg", { viewBox: `0 0 ${wide} ${HIGH}`, width: wide, height: HIGH, "aria-hidden": "true" },
    svg("svg", { x: EDGE.left, y: EDGE.top, width: across, height: down },
      data.areas.map((one) => [box(data.levels[0].kind, one.since, one.until, one.key_low, one.key_high),
        one.parts.map((part) => box(data.levels[part.level].kind, part.since, part.until, one.key_low, one.key_high))]),
      data.areas.map((one, i) => box(`area${data.aggregated ? " row" : ""}${i === chosen ? " chosen" : ""}`, one.since, one.until, one.key_low, one.key_high, { "data-area": i })),
      truncated && head.points.map((one) => box("veil", data.begins, one.at, one.key_low, one.key_high)),
      lines.filter((one) => one !== head || truncated).map((one) => [svg("path", { class: "halo", d: path(one) }), svg("path", { class: one.kind, d: path(one) })])),
    marks.map((one) => {
      const at = EDGE.left + x(one.at);
      return svg("g", { class: `mark ${one.kind}` }, svg("title", {}, `${some(one.number, changes[one.kind])}, ${time(one.at)} UTC`),
        marks.length <= across / 20 && svg("path", { d: `M${at.toFixed(1)} ${EDGE.top}v${down}` }),
        svg("path", { class: "flag", d: one.kind === "cut" ? `M${at - 4} ${EDGE.top - 9}h8l-4 8z` : `M${at} ${EDGE.top - 10}l4 5l-4 5l-4 -5z` }));
    }),
    [0, 0.25, 0.5, 0.75, 1].map((key) => svg("text", { x: EDGE.left - 6, y: EDGE.top + y(key) + 4, "text-anchor": "end" }, String(key))),
    ticks(since, until, across).map((at) => [
      svg("path", { class: "tick", d: `M${(EDGE.left + x(at.at)).toFixed(1)} ${HIGH - EDGE.bottom}v4` }),
      svg("text", { class: "when", x: EDGE.left + x(at.at), y: HIGH - 6, "text-anchor": "middle" }, at.words)]));
}

// Round times, as many as there is room for; the first one has its day, and each at which a day begins.
function ticks(since, until, across) {
  const room = Math.max(1, Math.floor(across / 90));
  const step = 1000 * (ROUND.find((one) => (until - since) / 1000 / one <= room) ?? ROUND.at(-1));
  const found = [];
  let day = "";
  for (let at = Math.ceil(since / step) * step; at <= until; at += step) {
    if ((at - since) / (until - since) * across > across - 24) break;
    const text = time(at);
    const clock = text.slice(11, step < 60_000 ? 19 : 16);
    found.push({ at, words: step >= 86_400_000 ? text.slice(0, 10) : day === text.slice(0, 10) ? clock : clock === "00:00" ? text.slice(5, 10) : `${text.slice(5, 10)} ${clock}` });
    day = text.slice(0, 10);
  }
  return found;
}

// A sign of a legend, as the map has it.
export function sign(kind) {
  const drawing = /^(rate|cool)/.test(kind) ? svg("rect", { class: kind, width: 14, height: 12 })
    : kind.startsWith("mark") ? svg("path", { class: "flag", d: kind.endsWith("cut") ? "M2 2h10l-5 8z" : "M7 1l5 5l-5 5l-5 -5z" })
      : svg("path", { class: kind, d: "M0 6H26" });
  return svg("svg", { class: `sign ${kind}`, viewBox: `0 0 ${/^(head|position)/.test(kind) ? 26 : 14} 12`, "aria-hidden": "true" }, drawing);
}
