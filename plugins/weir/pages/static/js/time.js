// Several streams or groups over time in one chart, and where they are going.

import { chart } from "./chart.js";
import { el, replace } from "./dom.js";
import { page } from "./page.js";
import { moment, perSecond, section, table } from "./parts.js";
import { address, ask, given } from "./rest.js";
import { number, short, size, span, time } from "./words.js";

const COLOURS = ["--accent", "--line0", "--line2", "--line1", "--roll", "--line3", "--scale", "--policy"];
// What a chart shows: of streams or groups, which of their numbers, in words, and how it is written, on the axis too.
const SHOWN = {
  appended: { of: "streams", what: "events", title: "Events appended per second", said: (one) => perSecond(one), axis: perSecond },
  bytes: { of: "streams", what: "bytes", title: "Bytes appended per second", said: (one) => `${size(one)}/s`, axis: (one) => `${size(one)}/s` },
  kept: { of: "streams", what: "kept", title: "Bytes kept", said: size, axis: size },
  unread: { of: "groups", what: "unread", title: "Unread events", said: number, axis: short },
  lag: { of: "groups", what: "unread_bytes", title: "Unread bytes", said: size, axis: size },
  read: { of: "groups", what: "read", title: "Events read per second", said: (one) => perSecond(one), axis: perSecond },
};
const RANGES = [[6, "6 hours"], [24, "a day"], [168, "7 days"], [720, "30 days"], [8760, "a year"], [26280, "3 years"]];

const wanted = { of: given.get("of") ?? "", hours: given.get("hours") ?? "24", until: given.get("until") ?? "" };
let show = SHOWN[given.get("show")] ? given.get("show") : "";
let answer = null;

const names = el("input", { type: "search", placeholder: "Streams and reader groups, by commas", "aria-label": "Streams and reader groups, by commas (/)",
  value: wanted.of, spellcheck: "false", autocomplete: "off", change: () => change({ of: names.value.replaceAll(/\s+/g, "") }) });
const what = choice("What is shown", Object.entries(SHOWN).map(([name, one]) => [name, one.title]), show, (value) => { show = value; address_(); redraw(); });
const range = choice("How long a time", RANGES.map(([hours, text]) => [String(hours), `Over ${text}`]), wanted.hours, (hours) => change({ hours }));
const until = el("input", { type: "datetime-local", title: "Empty: now",
  value: wanted.until.slice(0, 16), change: () => change({ until: until.value && `${until.value}:00Z` }) });
const place = el("div", {});
const owners = el("div", {});

const shown = page({
  here: "time",
  title: "Over time",
  asks: () => ["time", wanted],
  draw,
  tools: el("div", { class: "tools", role: "search" }, names, what, range, el("label", { class: "muted" }, "until (UTC) ", until)),
});

function choice(label, options, value, changed) {
  const made = el("select", { "aria-label": label, change: () => changed(made.value) }, options.map(([name, text]) => el("option", { value: name }, text)));
  if (value) made.value = value;
  return made;
}

function change(changed) {
  Object.assign(wanted, changed);
  address_();
  shown.again();
}

function address_() {
  history.replaceState(null, "", address("time", { ...wanted, show }));
}

function draw(data, now) {
  answer = [data, now];
  if (!show) show = what.value = data.streams.length ? "appended" : "unread";
  redraw();
  keepers();
  return [place, owners];
}

function redraw() {
  if (!answer) return;
  const [data, now] = answer;
  const { of, title } = SHOWN[show];
  const found = data[of];
  replace(place, found.length ? [section(title, drawn(data, now)), of === "streams" ? streams(found, now) : groups(found, now)]
    : el("div", { class: "empty" }, el("p", {}, `${wanted.of ? "None of these is a" : "There is no"} ${of === "streams" ? "stream" : "reader group"}${wanted.of ? "" : " yet"}.`),
      el("p", { class: "muted" }, "What is recorded of them begins with the first runs of weir_stream_cuts and weir_checkpoints.")));
}

// The chart: a line for each, and one with dashes for what is foretold of it.
function drawn(data, now) {
  const { of, what, title, said, axis } = SHOWN[show];
  const lines = data[of].map((one, i) => ({ name: one.stream ?? one.group, values: one[what], ahead: foretold(one, data), colour: COLOURS[i] }));
  const at = data.at.map(Date.parse);
  const all = [...new Set([...at, ...lines.flatMap((one) => one.ahead.map(([when]) => when))])].sort((a, b) => a - b);
  const column = (points) => { const found = new Map(points); return all.map((when) => found.get(when) ?? null); };
  const series = [];
  const columns = [];
  for (const { name, values, ahead, colour } of lines) {
    series.push({ label: name, steps: !["kept", "unread", "unread_bytes"].includes(what), colour });
    columns.push(column(at.map((when, i) => [when, values[i]])));
    if (ahead.length) {
      series.push({ label: `${name}, foretold`, dash: [6, 5], gaps: true, colour });
      columns.push(column(ahead));
    }
  }
  const ends = lines.map((one) => `${one.name} ${one.values.at(-1) === null ? "not known" : said(one.values.at(-1))}`).join(", ");
  return [
    chart([all.map((when) => when / 1000), ...columns], series, { title: `${title} over time: ${ends}`, height: 300, said, axis }),
    el("p", { class: "muted" }, `As recorded by ${time(now)} UTC, in parts of ${span(data.step)}.`,
      lines.some((one) => one.ahead.length) && (what === "kept" ? " Dashes: what is left once retention has truncated what it may by then, if nothing is appended, read or released."
        : " Dashes: what will be unread at the rates of the last hour.")),
  ];
}

// The points of what is foretold of a line, as [time, value]; bytes only as far as the chart is worth it.
function foretold(one, { at }) {
  if (show === "unread") return one.forecast.map((point) => [Date.parse(point.at), point.value]);
  if (show !== "kept" || !one.kept.length || wanted.until) return [];
  const now = Date.parse(at.at(-1));
  const most = now + (now - Date.parse(at[0]));
  const points = one.goes.map((will) => [Date.parse(will.at), one.kept.at(-1) - will.bytes]).filter(([when]) => when <= most);
  return points.length ? [[now, one.kept.at(-1)], ...points] : [];
}

function streams(found, now) {
  const goes = (one, i) => (one.goes[i] ? [size(one.goes[i].bytes), el("small", {}, one.goes[i].reason)] : el("span", { class: "muted" }, "nothing"));
  const day = found.find((one) => one.goes.length)?.goes;
  return section("Of these streams", table([
    { title: "Stream", cell: (one) => el("a", { class: "name", href: address("stream", { name: one.stream }), "data-key": one.stream }, one.stream) },
    { title: "Owner", cell: (one) => one.owner ?? "" },
    { title: "Newest rate", number: true, cell: (one) => last(one.events, perSecond) },
    { title: "Bytes", number: true, cell: (one) => last(one.bytes, (rate) => `${size(rate)}/s`) },
    { title: "Kept", number: true, cell: (one) => size(one.kept.at(-1)) },
    { title: "Goes tonight", cell: (one) => goes(one, 0) },
    { title: "In a week", cell: (one) => goes(one, 1) },
  ], found, { caption: "Streams over time" }),
  el("p", { class: "muted" }, day && [`Tonight: by ${time(day[0].at)} UTC; in a week: by ${time(day[1].at)} UTC, if nothing is appended, read or released. `],
    el("a", { href: address("retention", { days: 1 }) }, "All that goes tonight"), " · ", el("a", { href: address("retention", { days: 7 }) }, "in a week")));
}

function groups(found, now) {
  return section("Of these reader groups", table([
    { title: "Reader group", cell: (one) => el("a", { class: "name", href: address("group", { name: one.group }), "data-key": one.group }, one.group) },
    { title: "Unread", number: true, cell: (one) => number(one.unread.at(-1)) },
    { title: "Read in the last hour", number: true, cell: (one) => (one.pace?.read_rate ? perSecond(one.pace.read_rate) : "nothing") },
    { title: "Appended in the last hour", number: true, cell: (one) => (one.pace?.append_rate ? perSecond(one.pace.append_rate) : "nothing") },
    { title: "Has caught up", cell: (one) => (!one.unread.at(-1) ? "all is read" : one.caught_up_at ? moment(one.caught_up_at, now) : "never, at this pace") },
  ], found, { caption: "Reader groups over time" }));
}

function last(values, said) {
  const value = values.at(-1);
  return value === null || value === undefined ? el("span", { class: "muted" }, "not known") : value ? said(value) : "at rest";
}

// What owners keep, asked beside the rest; each answer is a day's or an hour's.
async function keepers() {
  const { data } = await ask("time/owners", { hours: wanted.hours }).catch(() => ({ data: { at: [] } }));
  if (!data.at.length) return replace(owners);
  const more = data.others.length ? [{ owner: "others", bytes: data.others, streams: null }] : [];
  const lines = [...data.owners, ...more];
  const name = (one) => one.owner ?? "nobody";
  replace(owners, section("Bytes kept, by owner",
    chart([data.at.map((one) => Date.parse(one) / 1000), ...lines.map((one) => one.bytes)],
      lines.map((one, i) => ({ label: name(one), steps: true, gaps: true, colour: COLOURS[i] ?? "--muted" })),
      { title: `Bytes kept, by owner: ${lines.map((one) => `${name(one)} ${size(one.bytes.findLast((bytes) => bytes !== null))}`).join(", ")}`, said: size, axis: size }),
    el("p", { class: "muted" }, "As weir_upkeep found it each time that it ran."),
    table([
      { title: "Owner", cell: (one) => (one.owner && one.streams !== null ? el("a", { class: "name", href: address("streams", { owner: one.owner }) }, one.owner) : name(one)) },
      { title: "Streams", number: true, cell: (one) => (one.streams === null ? "" : number(one.streams)) },
      { title: "Kept", number: true, cell: (one) => size(one.bytes.findLast((bytes) => bytes !== null)) },
    ], lines, { caption: "Bytes kept, by owner" })));
}
