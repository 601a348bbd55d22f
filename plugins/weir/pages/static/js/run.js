// What a run did: of a whole run a row for each task, of one task its report, and what it read and wrote.

import { lacking } from "./about.js";
import { bar } from "./acts.js";
import { el } from "./dom.js";
import { log } from "./log.js";
import { page } from "./page.js";
import { facts, links, moment, section, table } from "./parts.js";
import { address, given } from "./rest.js";
import { number, some, span, time } from "./words.js";

const mapped = given.get("map_index") ?? "";
const run = {
  run_id: given.get("run_id") ?? "",
  task_id: given.get("task_id") ?? "",
  map_index: /^[0-9]+$/.test(mapped) ? mapped : -1, // Airflow leaves the name of it for a task that is not mapped
};
const dag = given.get("dag_id") ?? "";

page({
  here: "",
  title: run.task_id ? `${dag} · ${run.task_id}` : dag || "Run",
  asks: () => [`runs/${encodeURIComponent(dag)}`, run],
  draw,
  lacks: dag && run.run_id ? null : lacking("run", ["runs", "All runs"], ""),
});

function draw({ runs, steps, more, logs }, now) {
  return run.task_id ? one(runs[0], steps, more, logs, now) : all(runs, logs, now);
}

function all(runs, logs, now) {
  return table([
    { title: "Task", cell: (of) => el("a", { class: "name", href: address("run", { dag_id: of.dag_id, run_id: of.run_id, task_id: of.task_id, map_index: of.map_index }), "data-key": `${of.task_id} ${of.map_index}` },
      of.task_id, of.map_index >= 0 && ` [${of.map_index}]`) },
    { title: "Action", cell: (of) => of.job },
    { title: "State", cell: (of) => state(of) },
    { title: "Begun", cell: (of) => moment(of.started_at, now) },
    { title: "Took", number: true, cell: (of) => took(of, now) },
    { title: "What it says", wide: true, cell: (of) => [of.error ?? of.progress ?? "", " ", log(logs, of)] },
  ], runs, { caption: "Tasks of the run" });
}

// Of a run that did not say how it ended.
const SILENT = "It gives no sign of life any more: it was killed, or it hangs.";

function one(of, steps, more, logs, now) {
  const failed = of.state === "failed" || of.state === "killed";
  return [
    el("p", { class: "muted" }, of.run_id, of.map_index >= 0 && `, map index ${of.map_index}`),
    bar(["Do it again", of.job, again(of.arguments)]),
    steps.length > 0 && links(["Lineage", "lineage", { run: [dag, run.run_id, run.task_id, ...(of.map_index >= 0 ? [of.map_index] : [])].join("/") }]),
    failed && el("div", { class: "error" }, el("p", {}, of.error ?? SILENT, " ", log(logs, of))),
    of.state === "running" && of.progress && el("p", { class: "lead" }, of.progress),
    !failed && el("p", {}, log(logs, of)),
    facts([
      ["State", state(of), of.try_number > 1 && `try ${of.try_number}`],
      ["Action", of.job],
      ["Took", took(of, now), `begun ${time(of.started_at)}`],
      subject(of),
      of.started_by && ["Started by", of.started_by],
    ]),
    of.report && section("Report", values(of.report)),
    ...[["read", "Read"], ["wrote", "Wrote"]].map(([side, title]) => moved(title, steps.filter((step) => step.side === side), now)),
    more && el("p", { class: "muted" }, "This is not all; the function weir.lineage has it."),
    section("Arguments", values(of.arguments)),
  ];
}

// The arguments that a form takes again: without those that are empty.
function again(found) {
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== null && value !== ""));
}

function state(of) {
  return el("span", { class: `state ${of.state}` }, of.state);
}

function took(of, now) {
  return span((new Date(of.ended_at ?? now) - new Date(of.started_at)) / 1000);
}

// The stream or the group that the task is about.
function subject(of) {
  const { stream, reader_group: group } = { ...of.arguments, ...of.report };
  if (typeof group === "string" && group) return ["Reader group", el("a", { href: address("group", { name: group }) }, group)];
  if (typeof stream === "string" && stream) return ["Stream", el("a", { href: address("stream", { name: stream }) }, stream)];
  return null;
}

function moved(title, steps, now) {
  if (!steps.length) return null;
  const events = steps.reduce((all, step) => all + (step.to_offset === null ? 0 : step.to_offset - step.from_offset), 0);
  return section(events ? `${title}: ${some(events, "event")}` : title, table([
    { title: "What", cell: (step) => step.kind },
    { title: "Name", cell: (step) => (step.kind === "stream" ? el("a", { href: address("stream", { name: step.name }) }, step.name) : step.name) },
    { title: "Segment", cell: (step) => step.segment && el("code", {}, step.segment) },
    { title: "From", number: true, cell: (step) => (step.segment ? number(step.from_offset) : "") },
    { title: "To", number: true, cell: (step) => (step.segment ? number(step.to_offset) : "") },
    { title: "Events", number: true, cell: (step) => (step.segment ? number(step.to_offset - step.from_offset) : "") },
    { title: "Version", number: true, cell: (step) => (step.version === null ? "" : number(step.version)) },
    { title: "Batch", cell: (step) => (step.batch_id === null ? "" : [el("a", { href: address("outputs", { group: step.reader_group, batch: step.batch_id }), title: "what another run has made of its events" }, step.batch_id), " of ", el("a", { href: address("group", { name: step.reader_group }) }, step.reader_group)]) },
    { title: "Committed", cell: (step) => moment(step.committed_at, now) },
  ], steps, { caption: title }));
}

// What a report or arguments say, as they are.
function values(found) {
  const pairs = Object.entries(found).filter(([, value]) => value !== null && value !== "");
  if (!pairs.length) return el("p", { class: "empty" }, "Nothing.");
  return el("dl", { class: "values" }, pairs.map(([name, value]) =>
    [el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, shown(value))]));
}

function shown(value) {
  if (typeof value === "number") return number(value);
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.length ? value.join(", ") : "none";
  if (/^https?:\/\//.test(value)) return el("a", { href: value }, value);
  if (typeof value !== "object") return String(value);
  const lines = Array.isArray(value) ? value.map(line) : pairs(value);
  return lines.length ? el("pre", {}, lines.join("\n")) : "none";
}

function line(value) {
  return value && typeof value === "object" && !Array.isArray(value) ? pairs(value).join("; ") : JSON.stringify(value);
}

function pairs(value) {
  return Object.entries(value).map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one)}`);
}
