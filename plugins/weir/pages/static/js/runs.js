// The runs of Weir's jobs, the newest first.

import { el } from "./dom.js";
import { log } from "./log.js";
import { page } from "./page.js";
import { moment, pager, table } from "./parts.js";
import { address, given } from "./rest.js";
import { number, some, span } from "./words.js";

const BUT_UPKEEP = "but upkeep"; // no name of an action has a blank
const wanted = {
  job: given.get("job") ?? "", state: given.get("state") ?? "", stream: given.get("stream") ?? "",
  reader_group: given.get("reader_group") ?? "", after: given.get("after") ?? "",
};
const before = []; // where the pages before this one begin

const job = choice("Action", "job", [["", "All actions"], [BUT_UPKEEP, "All but upkeep"]]);
const state = choice("State", "state", [["", "All states"], ...["running", "succeeded", "failed", "killed", "submitted"].map((one) => [one, one])]);
const stream = named("Stream", "stream");
const group = named("Reader group", "reader_group");

const shown = page({
  here: "runs",
  title: "Runs",
  asks: () => ["runs", { ...wanted, job: wanted.job === BUT_UPKEEP ? "" : wanted.job, upkeep: wanted.job === BUT_UPKEEP ? "false" : "" }],
  draw,
  tools: el("div", { class: "tools", role: "search" }, job, state, stream, group),
});

function choice(label, name, options) {
  const made = el("select", { "aria-label": label, change: () => change({ [name]: made.value }) },
    options.map(([value, text]) => el("option", { value }, text)));
  made.value = wanted[name];
  return made;
}

function named(label, name) {
  const made = el("input", {
    type: "search", placeholder: label, "aria-label": label, value: wanted[name], maxlength: 200, spellcheck: "false",
    autocomplete: "off", change: () => change({ [name]: made.value.trim() }),
  });
  return made;
}

function change(changed) {
  if (!("after" in changed)) before.length = 0;
  Object.assign(wanted, { after: "" }, changed);
  history.replaceState(null, "", address("runs", wanted));
  shown.again();
}

function draw({ runs, next, jobs, looked_at: most, logs }, now) {
  if (job.options.length === 2) {
    job.append(...jobs.map((one) => el("option", { value: one }, one.replaceAll("_", " "))));
    job.value = wanted.job;
  }
  const more = pager({ here: runs.length, total: null, what: "run", before, after: wanted.after, next, go: (after) => change({ after }) });
  if (!runs.length) return [el("div", { class: "empty" }, nothing(next, most)), (next || before.length > 0) && more];
  return [table([
    { title: "Task", cell: task },
    { title: "Action", cell: (one) => one.job.replaceAll("_", " ") },
    { title: "State", cell: (one) => [el("span", { class: `state ${one.state}` }, one.state), one.try_number > 1 && el("small", {}, `try ${number(one.try_number)}`)] },
    { title: "Begun", cell: (one) => moment(one.started_at, now) },
    { title: "Took", number: true, cell: (one) => span((new Date(one.ended_at ?? now) - new Date(one.started_at)) / 1000) },
    { title: "Read and wrote", cell: moved },
    { title: "What it says", wide: true, cell: (one) => [one.says ?? "", " ", log(logs, one)] },
  ], runs, { caption: "Runs" }), more];
}

function task(one) {
  const { dag_id, run_id, task_id, map_index } = one;
  return [
    el("a", { class: "name", href: address("run", { dag_id, run_id, task_id, map_index }), "data-key": `${dag_id}/${run_id}/${task_id}/${map_index}/${one.try_number}` },
      `${dag_id} · ${task_id}`, map_index >= 0 && ` [${map_index}]`),
    el("small", {}, one.started_by ?? el("a", { href: address("run", { dag_id, run_id }) }, run_id)),
  ];
}

function moved(one) {
  const of = one.reader_group ? el("a", { href: address("group", { name: one.reader_group }) }, one.reader_group)
    : one.stream && el("a", { href: address("stream", { name: one.stream }) }, one.stream);
  const wrote = one.wrote.map((output, i) => [i > 0 && ", ",
    output.kind === "stream" ? el("a", { href: address("stream", { name: output.name }) }, output.name) : output.name]);
  return [of,
    one.batches > 0 && el("small", {}, `read ${some(one.read, "event")} in ${some(one.batches, "batch", "batches")}`),
    !one.batches && one.events !== null && el("small", {}, some(one.events, "event")),
    wrote.length > 0 && el("small", {}, "wrote ", wrote)];
}

function nothing(next, most) {
  if (next) return el("p", {}, `None of the ${number(most)} runs that were looked at is like this. Next looks at older ones.`);
  if (wanted.job || wanted.state || wanted.stream || wanted.reader_group || wanted.after) return el("p", {}, "No run is like this.");
  return [el("p", {}, "No job of Weir has run yet."),
    el("p", { class: "muted" }, "Trigger a DAG of Weir in Airflow, or run ", el("code", {}, "weir ingest shop/orders --files orders.csv"), " in a terminal.")];
}
