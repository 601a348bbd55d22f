// Parts that several pages show.

import { el, svg } from "./dom.js";
import { address } from "./rest.js";
import { ago, number, short, some, span, time } from "./words.js";

// A text, of which what stands in backquotes is typed.
export function said(text) {
  return text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

// How something is doing: a dot, and a line of words.
export function health(of, now) {
  return el("span", { class: `health ${of.level}` },
    el("span", { class: "dot", "aria-hidden": "true" }),
    el("span", {}, of.words,
      of.since && el("span", { class: "muted" }, `, for ${span((now - new Date(of.since)) / 1000)}`),
      of.at && el("span", { class: "muted" }, `, ${ago(of.at, now)}`)));
}

// Events per second over a window, with a small picture of it.
export function rate(activity) {
  const seconds = (new Date(activity.until) - new Date(activity.since)) / 1000;
  const all = activity.events.reduce((a, b) => a + b, 0);
  if (!all) return el("span", { class: "muted" }, "at rest");
  const most = Math.max(...activity.events);
  const width = 4;
  const bars = activity.events.map((events, i) => {
    const height = events ? Math.max(1.5, (events / most) * 20) : 0.6;
    return svg("rect", { x: i * width, y: 20 - height, width: width - 1, height });
  });
  const window = seconds === 3600 ? "hour" : span(seconds);
  const said = `${some(all, "event")} in the last ${window}, until ${time(activity.until)} UTC`;
  return el("span", { class: "rate", title: said },
    svg("svg", { class: "spark", viewBox: `0 0 ${activity.events.length * width} 20`, role: "img", "aria-label": said }, bars),
    el("span", {}, perSecond(all / seconds), el("small", {}, `in the last ${window}`)));
}

// A rate, in the unit in which the most that is beside it has digits.
export function perSecond(value, most = value) {
  if (most >= 1) return `${short(value)}/s`;
  return most * 60 >= 1 ? `${short(value * 60)}/min` : `${short(value * 3600)}/h`;
}

// A time that says on hovering when exactly it was.
export function moment(value, now) {
  return value ? el("time", { datetime: value, title: `${time(value)} UTC` }, ago(value, now)) : "–";
}

// A table. columns: [{ title, number, wide, cell(row) }], wide those of sentences, which are never cut; on a narrow screen each row is a card with the titles beside it.
export function table(columns, rows, { caption, none = "There is nothing yet." } = {}) {
  if (!rows.length) return el("p", { class: "empty" }, none);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", { class: "unseen" }, caption),
      el("thead", {}, el("tr", {}, columns.map((one) => el("th", { scope: "col", class: one.number && "n" }, one.title)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, columns.map((one) =>
        el("td", { class: one.number ? "n" : one.wide && "wide", "data-title": one.title }, one.cell(row))))))));
}

// Facts as pairs of a title and a value.
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(Boolean).map(([title, value, more]) =>
    el("div", {}, el("dt", {}, title), el("dd", {}, value, more && el("small", {}, more)))));
}

// Links to other pages about the same. pairs: [text, page, query].
export function links(...pairs) {
  return el("p", { class: "links" }, pairs.filter(Boolean).map(([text, path, query], i) => [i > 0 && " · ", el("a", { href: address(path, query) }, text)]));
}

// What somebody should look at, as sentences.
export function alerts(found) {
  const worst = found.some((one) => one.severity === "red") ? "bad" : "warn";
  return found.length > 0 && el("ul", { class: `alerts ${worst}` }, found.map((one) => el("li", {}, one.sentence)));
}

// Who did something: a link to the run of a task, or the name of a program.
export function runLink(name) {
  const parts = /^([^/]+)\/([^/]+)\/([^/]+?)(?:\/(\d+))?$/.exec(name);
  if (!parts) return name;
  const [, dag_id, run_id, task_id, map_index] = parts;
  return el("a", { href: address("run", { dag_id, run_id, task_id, map_index }) }, name);
}

// A part of the key space.
export function keys(low, high) {
  return `${Number(low.toFixed(4))} – ${Number(high.toFixed(4))}`;
}

// From page to page of a list. before: where the pages before this one begin. total: null where nobody counts. even: whether all pages but the last have 50 rows.
export function pager({ here, total, what, before, after, next, go, even = true }) {
  const first = before.length * 50 + 1;
  const turn = (to) => { go(to); scrollTo(0, 0); };
  return el("div", { class: "pages" },
    el("span", { class: "muted" }, !even || total === here || (!before.length && !next) ? some(here, what) : `${number(first)} to ${number(first + here - 1)}${total === null ? "" : ` of ${some(total, what)}`}`),
    el("button", { type: "button", disabled: !before.length, click: () => turn(before.pop()) }, "Before"),
    el("button", { type: "button", disabled: !next, click: () => { before.push(after); turn(next); } }, "Next"));
}

export function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), children);
}
