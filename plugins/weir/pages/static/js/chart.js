// Charts by uPlot, in the colours of the page.

import { el } from "./dom.js";
import { number, short } from "./words.js";

const uPlot = window.uPlot;

// The steps of the axis of time in seconds. None is shorter than what a label tells apart.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600, 604800,
  1209600, 2592000, 7776000, 15552000, 31536000];

// A time on the axis, so that no two labels are the same: its seconds, minutes, day or month, as the steps are; at midnight the day.
function label(at, step) {
  const text = new Date(at * 1000).toISOString();
  if (step >= 28 * 86400) return text.slice(0, 10);
  if (step >= 86400 || at % 86400 === 0) return text.slice(5, 10);
  return step < 60 ? text.slice(11, 19) : text.slice(11, 16);
}

// A chart that fills its width. data: columns as uPlot takes them, the first in seconds. series: [{ label, bars, steps, dash, gaps, colour }];
// gaps: a line goes on over what is not known; colour: the name of a colour of the page. said: how a value is written in the legend, which has the newest ones where nobody points.
export function chart(data, series, { height = 180, title, said = number, axis: written = short } = {}) {
  const place = el("div", { class: "chart", role: "img", "aria-label": title });
  const last = series.map(({ dash }, i) => (dash ? -1 : data[i + 1].findLastIndex((one) => one !== null))); // what is foretold is not the newest
  let made = null;

  function build() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const newest = (chart) => chart.cursor.idx === null && data[0].length && chart.setLegend({ idx: Math.max(...last, 0) }, false);
    made?.destroy();
    made = new uPlot({
      width: place.clientWidth || 600, height, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { points: { show: false } },
      legend: { live: true },
      hooks: { ready: [newest], setCursor: [newest] },
      axes: [{ ...axis, size: 30, incrs: STEPS, values: (_, times, __, ___, step) => times.map((at) => label(at, step)) },
        { ...axis, size: 64, values: (_, all) => all.map((one) => written(one, all.at(-1))) }],
      scales: { y: { range: (_, low, high) => [Math.min(0, low), high || 1] } },
      series: [{ label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...series.map(({ label, bars, steps, dash, gaps, colour: name = "--accent" }) => ({
        label, stroke: colour(name), dash, spanGaps: gaps, width: bars ? 0 : 1.5, points: { show: false }, value: (_, value) => (value === null ? "–" : said(value)),
        ...(bars ? { fill: colour(name), paths: uPlot.paths.bars({ size: [0.85], align: 1 }) } : {}),
        ...(steps ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
      }))],
    }, data, place);
  }

  new ResizeObserver(() => {
    if (!place.clientWidth) return;
    if (made) made.setSize({ width: place.clientWidth, height });
    else build();
  }).observe(place);
  const again = () => (place.isConnected ? build() : removeEventListener("mode", again));
  addEventListener("mode", again);
  return place;
}

// What a reader group had not read of a stream, with the stream's name.
export function unreadOf({ stream, at, events }) {
  return [
    el("h3", {}, stream),
    chart([at.map((one) => new Date(one) / 1000), events], [{ label: "unread events", steps: true }],
      { title: `Unread events of ${stream} over time, ${number(events.at(-1))} now`, height: 120 }),
  ];
}
