// What something was made of, and what was made of it: a graph in layers, and the same as a table.

import { lacking } from "./about.js";
import { el, svg } from "./dom.js";
import { page } from "./page.js";
import { runLink, section, table } from "./parts.js";
import { address, given } from "./rest.js";
import { number, short, some } from "./words.js";

const KINDS = { stream: "stream", group: "reader group", store: "adjunct store", table: "table", parquet: "Parquet files", file: "files", writer: "who appends" };
const WIDTH = 182, HEIGHT = 44, ACROSS = 56, DOWN = 18, LETTERS = 23;
const wanted = Object.fromEntries(["stream", "group", "store", "run", "segment", "offset", "depth"].map((name) => [name, given.get(name) ?? ""]));
const of = wanted.stream || wanted.group || wanted.store || wanted.run;
const row = wanted.segment && wanted.offset ? `, row ${wanted.offset} of segment ${wanted.segment}` : "";

const depth = el("select", { "aria-label": "How far", change: () => change() },
  [1, 2, 3, 4, 6, 8].map((one) => el("option", { value: one }, `${one === 1 ? "1 step" : `${one} steps`} each way`)));
depth.value = wanted.depth || "4";

let left = null; // how far the graph was moved
const shown = page({
  here: "",
  title: of ? `Lineage of ${of}${row}` : "Lineage",
  asks: () => ["lineage", wanted],
  draw,
  tools: el("div", { class: "tools" }, depth),
  lacks: of ? null : lacking("thing", ["streams", "All streams"], ""),
});

function change() {
  left = null;
  wanted.depth = depth.value;
  history.replaceState(null, "", address("lineage", wanted));
  shown.again();
}

function draw({ nodes, edges, exact, left_out: out }) {
  return [
    el("p", { class: "muted" }, exact ? "By what each commit read and wrote. " : "By who reads what, and by the newest hundred commits of each stream and reader group. ",
      out > 0 && `Left out: ${some(out, "more thing")}; take fewer steps, or begin elsewhere.`),
    nodes.length === 1 ? el("p", { class: "empty" }, "Nothing was made of it yet, and nothing is known of what it was made of.") : picture(nodes, edges),
    edges.length > 0 && section("The same as a list", list(nodes, edges)),
  ];
}

// The column of each node: to the right of all that it was made of, but for what goes round in circles.
function columnsOf(nodes, edges) {
  const column = nodes.map((one) => one.level);
  const reaches = (from, to, seen = new Set()) => from === to || (!seen.has(from)
    && Boolean(seen.add(from)) && edges.some(({ source, target }) => source === from && reaches(target, to, seen)));
  const onward = edges.filter(({ source, target }) => !reaches(target, source));
  for (let changed = true; changed;) {
    changed = false;
    for (const { source, target } of onward) {
      if (column[target] > column[source]) continue;
      column[target] = column[source] + 1;
      changed = true;
    }
  }
  return column;
}

// Within its column a node stands where the nodes are that it has to do with.
function places(nodes, edges) {
  const column = columnsOf(nodes, edges);
  const columns = new Map();
  column.forEach((x, i) => columns.set(x, [...(columns.get(x) ?? []), i]));
  const order = [...columns.keys()].sort((a, b) => a - b);
  const at = new Map(nodes.map((_, i) => [i, 0]));
  const spread = (those) => those.forEach((i, nth) => at.set(i, nth - (those.length - 1) / 2));
  columns.forEach(spread);
  const near = nodes.map((_, i) => edges.flatMap(({ source, target }) => (source === i ? [target] : target === i ? [source] : [])));
  for (const way of [order, [...order].reverse(), order]) {
    for (const x of way) {
      const middle = (i) => (near[i].length ? near[i].reduce((all, one) => all + at.get(one), 0) / near[i].length : 0);
      const sorted = columns.get(x).map((i) => [middle(i), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, i]) => i);
      columns.set(x, sorted);
      spread(sorted);
    }
  }
  const most = Math.max(...[...columns.values()].map((those) => those.length));
  return {
    width: order.length * (WIDTH + ACROSS) - ACROSS, height: most * (HEIGHT + DOWN) - DOWN,
    of: nodes.map((_, i) => ({ x: order.indexOf(column[i]) * (WIDTH + ACROSS), y: (at.get(i) + (most - 1) / 2) * (HEIGHT + DOWN) })),
  };
}

function picture(nodes, edges) {
  const { width, height, of } = places(nodes, edges);
  const lines = edges.map(({ source, target, events }) => {
    const from = { x: of[source].x + WIDTH, y: of[source].y + HEIGHT / 2 };
    const to = { x: of[target].x, y: of[target].y + HEIGHT / 2 };
    const back = to.x < from.x; // in a circle: below the boxes
    const bend = back ? ACROSS : Math.max(ACROSS / 2, (to.x - from.x) / 2);
    const under = back ? HEIGHT * 1.5 : 0;
    return [svg("path", { class: "edge", d: `M${from.x} ${from.y} C${from.x + bend} ${from.y + under} ${to.x - bend} ${to.y + under} ${to.x} ${to.y}` }),
      svg("path", { class: "arrow", d: `M${to.x} ${to.y} l-7 -4 v8 z` }),
      events && svg("text", { class: "events", x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 4, "text-anchor": "middle" }, short(events))];
  });
  const boxes = nodes.map((one, i) => {
    const href = where(one);
    const name = one.name.length > LETTERS ? `${one.name.slice(0, 10)}…${one.name.slice(11 - LETTERS)}` : one.name;
    return svg(href ? "a" : "g", { class: `node ${one.kind} ${i ? "" : "here"}`, href, transform: `translate(${of[i].x} ${of[i].y})`, "aria-label": `${KINDS[one.kind]} ${one.name}` },
      svg("title", {}, `${KINDS[one.kind]} ${one.name}`),
      svg("rect", { width: WIDTH, height: HEIGHT, rx: one.kind === "group" ? 22 : 6 }),
      svg("text", { class: "kind", x: 12, y: 17 }, KINDS[one.kind]), svg("text", { x: 12, y: 34 }, name));
  });
  const tall = height + (edges.some(({ source, target }) => of[target].x <= of[source].x) ? 48 : 16);
  const box = el("div", { class: "scroll graph", tabindex: "0", role: "region", "aria-label": "Lineage as a graph", scroll: () => { left = box.scrollLeft; } },
    svg("svg", { width: width + 48, height: tall, viewBox: `-24 -8 ${width + 48} ${tall}`, role: "group",
      "aria-label": `A graph of ${nodes.length} things; the list below has the same.` }, lines, boxes));
  // What the page is about is in the middle of a narrow one, until somebody moves it.
  requestAnimationFrame(() => { box.scrollLeft = left ?? of[0].x + 24 + (WIDTH - box.clientWidth) / 2; });
  return box;
}

function where({ kind, name }) {
  if (kind === "stream") return address("stream", { name });
  if (kind === "group") return address("group", { name });
  return kind === "store" ? address("store", { name }) : null;
}

function list(nodes, edges) {
  const cell = (one) => [where(one) ? el("a", { href: where(one) }, one.name) : one.kind === "writer" ? runLink(one.name) : one.name, el("small", {}, KINDS[one.kind])];
  const step = ({ source, target }) => (nodes[target].level > 0 ? nodes[target].level : nodes[source].level);
  const exact = edges.some((one) => one.events !== null);
  return table([
    { title: "From", cell: (one) => cell(nodes[one.source]) },
    { title: "To", cell: (one) => cell(nodes[one.target]) },
    ...(exact ? [{ title: "Events", number: true, cell: (one) => number(one.events) }] : []),
    { title: "Step", number: true, cell: (one) => number(step(one)) },
  ], [...edges].sort((a, b) => step(a) - step(b)), { caption: "What was made of what" });
}
