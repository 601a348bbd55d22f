// Charts by uPlot, in the colours of the page.

import { el } from "./dom.js";
import { number, short } from "./words.js";

const uPlot = window.uPlot;

// A time on the axis: a day where days are shown, else hours and minutes.
function label(at, times) {
  const text = new Date(at * 1000).toISOString();
  return times.length > 1 && times[1] - times[0] >= 86400 ? text.slice(5, 10) : text.slice(11, 16);
}

// A chart that fills its width. data: columns as uPlot takes them, the first in seconds. series: [{ label, bars, steps, other }]; other: in
// another colour.
export function chart(data, series, { height = 180, title } = {}) {
  const place = el("div", { class: "chart", role: "img", "aria-label": title });
  let made = null;

  function build() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    made?.destroy();
    made = new uPlot({
      width: place.clientWidth || 600, height, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { points: { show: false } },
      legend: { live: true },
      axes: [{ ...axis, values: (_, times) => times.map((at) => label(at, times)) }, { ...axis, size: 56, values: (_, all) => all.map(short) }],
      scales: { y: { range: (_, low, high) => [Math.min(0, low), high || 1] } },
      series: [{ label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...series.map(({ label, bars, steps, other }) => ({
        label, stroke: colour(other ? "--warn" : "--accent"), width: bars ? 0 : 1.5, points: { show: false },
        ...(bars ? { fill: colour("--accent"), paths: uPlot.paths.bars({ size: [0.85], align: 1 }) } : {}),
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
