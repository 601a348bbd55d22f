// The form of an action, filled in: what is wrong with it, the command that does the same, and a button that asks
// Airflow for a run. Airflow decides who may have one.

import { lacking } from "./about.js";
import { el, replace } from "./dom.js";
import { page } from "./page.js";
import { said } from "./parts.js";
import { address, ask, given as asked } from "./rest.js";

const action = asked.get("action") ?? "";
const first = begin(asked.get("given"));
const form = el("form", { class: "form", submit: (event) => event.preventDefault(), input: () => soon() });
const outcome = el("div", { class: "outcome", role: "status" });
let inputs = null; // once the fields are there: { name: { field, read } }
let shown = null; // the newest answer
let following = 0;

const here = page({ here: "", title: titled(action.replaceAll("_", " ") || "act"), asks: () => [`actions/${encodeURIComponent(action)}`, { given: JSON.stringify(filled()) }], draw, tools: form, lacks: action ? null : lacking("action", ["streams", "All streams"], "") });

function titled(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function begin(text) {
  try {
    const found = JSON.parse(text ?? "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

// Of a run that Weir has no record of: what is given was refused before it began.
const LOG = "It was refused before it began; the log of its task in Airflow says why.";

let typing = null;

function soon() {
  clearTimeout(typing);
  typing = setTimeout(() => here.again(), 250);
}

// What differs from what the form begins with by itself.
function filled() {
  if (!inputs) return first;
  const all = Object.values(inputs).map(({ field, read }) => [field, read()]);
  return Object.fromEntries(all.filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(field.value) && !(field.value === null && isEmpty(value))).map(([field, value]) => [field.name, value]));
}

function isEmpty(value) {
  return value === null || value === "" || (Array.isArray(value) && !value.length);
}

function draw(data) {
  shown = data;
  if (!inputs) build(data);
  const may = data.trigger?.address;
  return [
    data.problem && (data.incomplete ? el("p", { class: "muted" }, `Still to be filled in: ${unfilled()}.`)
      : el("div", { class: "error", role: "alert" }, el("p", {}, data.problem))),
    data.irreversible && !inputs.dry_run?.read() && el("p", { class: "warning" }, "This can't be undone."),
    data.trigger && el("p", { class: "buttons" },
      may && el("button", { class: "main", type: "button", disabled: Boolean(data.problem), "data-key": "start", click: start }, `Trigger ${data.trigger.dag_id}`),
      data.trigger.refused && el("span", { class: "muted" }, data.trigger.refused)),
    data.approved && may && el("p", { class: "muted" }, "If a run would lose something, it waits until a person approves exactly that (Required Actions in Airflow)."),
    outcome,
    data.command && el("section", {}, el("h2", {}, data.trigger ? "The same in a terminal" : "In a terminal"), command(data.command)),
  ];
}

// The fields that are required, and are empty.
function unfilled() {
  return Object.values(inputs).filter(({ field, read }) => field.required && isEmpty(read())).map(({ field }) => field.title).join(", ");
}

function command(text) {
  const code = el("code", {}, text);
  const copy = el("button", { type: "button", "data-key": "copy", click: async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch { // the browser does not let this page
      getSelection().selectAllChildren(code);
      copy.textContent = "Selected: press Ctrl+C";
    }
  } }, "Copy");
  return el("div", { class: "command" }, code, copy);
}

function build({ about, fields }) {
  inputs = {};
  const parts = new Map();
  for (const field of fields) {
    if (!parts.has(field.section)) parts.set(field.section, []);
    parts.get(field.section).push(row(field));
  }
  replace(form, el("p", { class: "lead" }, said(about)), [...parts].map(([title, rows]) =>
    title ? el("details", { open: fields.some((one) => one.section === title && one.name in first) }, el("summary", {}, title), rows) : rows));
}

function row(field) {
  const { input, read } = made(field, field.name in first ? first[field.name] : field.value);
  const id = `field-${field.name}`;
  input.id = id;
  input.setAttribute("aria-describedby", `${id}-help`);
  if (field.required) input.required = true;
  inputs[field.name] = { field, read };
  const label = el("label", { for: id }, field.title, field.required && el("span", { class: "needed", title: "required" }, " *"));
  const check = input.type === "checkbox";
  return el("div", { class: `field${check ? " check" : ""}` }, check ? [input, label] : [label, input, list(field, input)], el("small", { id: `${id}-help` }, said(field.description)));
}

function made(field, value) {
  const { type, enum: choices, items } = field.json_schema;
  const text = value === null || value === undefined ? "" : String(value);
  if (type === "boolean") {
    const input = el("input", { type: "checkbox" });
    input.checked = value === true;
    return { input, read: () => input.checked };
  }
  if (choices) {
    const input = el("select", {}, [...(field.required && !choices.includes(value) ? [""] : []), ...choices].map((one) => el("option", { value: one }, one)));
    input.value = text;
    return { input, read: () => input.value };
  }
  if (type === "array") {
    const input = el("textarea", { rows: 3, placeholder: "one a line", spellcheck: "false" });
    input.value = Array.isArray(value) ? value.join("\n") : text;
    const wanted = items?.type === "number" || items?.type === "integer" ? numeric : (line) => line;
    const blanks = items?.exact ? (line) => line : (line) => line.trim();
    return { input, read: () => input.value.split("\n").map(blanks).filter(Boolean).map(wanted) };
  }
  if (type === "object") {
    const input = el("textarea", { rows: 3, spellcheck: "false" });
    input.value = JSON.stringify(value ?? {});
    return { input, read: () => { try { return JSON.parse(input.value || "{}"); } catch { return input.value; } } };
  }
  const input = field.multiline ? el("textarea", { rows: 4, spellcheck: "false" })
    : el("input", { type: "text", spellcheck: "false", autocomplete: "off", inputmode: type === "string" ? "text" : "decimal" });
  input.value = text;
  return { input, read: () => (type === "string" ? input.value : input.value.trim() === "" ? null : numeric(input.value)) };
}

function numeric(text) {
  return /^\s*-?\d+(\.\d+)?\s*$/.test(text) ? Number(text) : text;
}

function list(field, input) {
  if (!field.examples.length || input.tagName !== "INPUT") return null;
  input.setAttribute("list", `examples-${field.name}`);
  return el("datalist", { id: `examples-${field.name}` }, field.examples.map((one) => el("option", { value: one })));
}

// Ask Airflow for a run, and follow it.
async function start() {
  const { address: to, dag_id } = shown?.trigger ?? {};
  if (!to) return;
  const button = document.querySelector("button.main");
  button.disabled = true;
  const mine = (following += 1);
  say("Airflow is asked for a run …");
  try {
    const answer = await fetch(to, { method: "POST", headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ logical_date: null, conf: filled() }) });
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) return say(refusal(answer.status, body), "failed");
    await follow(`${to}/${encodeURIComponent(body.dag_run_id)}`, dag_id, body.dag_run_id, mine);
  } catch (error) {
    say(`Airflow does not answer: ${error.message}`, "failed");
  } finally {
    button.disabled = Boolean(shown.problem);
  }
}

function refusal(status, body) {
  if (status === 401) return "You are not logged in, or no longer: log in, then load this page again.";
  if (status === 403) return "You may not trigger this. Whoever administers Airflow can let you.";
  const said = body.detail;
  return typeof said === "string" ? said : said ? JSON.stringify(said) : `Airflow answered ${status} and did not say why.`;
}

async function follow(at, dag_id, run_id, mine) {
  const link = () => el("a", { href: address("run", { dag_id, run_id }) }, run_id);
  for (;;) {
    const answer = await fetch(at, { headers: { accept: "application/json" } });
    const { state } = answer.ok ? await answer.json() : {};
    if (mine !== following) return;
    const ended = state === "success" || state === "failed";
    const sentence = state === "failed" ? await why(dag_id, run_id) : "";
    say([`The run ${words[state] ?? `is ${state ?? "there"}`}: `, link(), sentence && el("p", {}, sentence)], state);
    if (ended) return;
    await new Promise((done) => setTimeout(done, 1500));
  }
}

const words = { success: "has succeeded", failed: "has failed" };

async function why(dag_id, run_id) {
  try {
    const { data } = await ask(`runs/${encodeURIComponent(dag_id)}`, { run_id });
    return data.runs.map((one) => one.error).find(Boolean) ?? LOG;
  } catch {
    return LOG;
  }
}

function say(what, state = "") {
  replace(outcome, el("div", { class: `said ${state}` }, what));
}
