// What a changed function has changed: two outputs of the same events of a reader group, row by row.

import { lacking } from "./about.js";
import { bar } from "./acts.js";
import { el } from "./dom.js";
import { page } from "./page.js";
import { facts, links, moment, section, table } from "./parts.js";
import { address, given } from "./rest.js";
import { number, some } from "./words.js";

const names = ["group", "batch", "output", "other", "other_batch", "other_output", "key"];
const wanted = Object.fromEntries(names.map((name) => [name, given.get(name) ?? ""]));
const { group } = wanted;

const batch = el("input", { type: "text", inputmode: "numeric", "aria-label": "Batch", placeholder: "Batch: the newest read twice", value: wanted.batch, maxlength: 18, autocomplete: "off" });
const key = el("input", { type: "text", "aria-label": "Columns of a key", placeholder: "Columns of a key: customer, day", value: wanted.key, maxlength: 2000, spellcheck: "false", autocomplete: "off" });

const shown = page({
  here: "groups",
  title: group ? `Old and new output of ${group}` : "Old and new output",
  asks: () => [`groups/${encodeURIComponent(group)}/outputs`, { ...wanted, group: "" }],
  draw,
  tools: el("div", {}, links([`To the reader group ${group}`, "group", { name: group }]),
    el("form", { class: "tools", submit: (event) => { event.preventDefault(); look(); } }, batch, key, el("button", { type: "submit" }, "Compare"))),
  once: true,
  lacks: group ? null : lacking("reader group", ["groups", "All reader groups"], ""),
});

function look() {
  const other = batch.value.trim() === wanted.batch ? {} : { output: "", other: "", other_batch: "", other_output: "" };
  Object.assign(wanted, other, { batch: batch.value.trim(), key: key.value.trim() });
  history.replaceState(null, "", address("outputs", wanted));
  shown.again();
}

function draw(data, now) {
  const { old, new: now_, lacks, said, columns, rows, others } = data;
  const changed = rows.filter((row) => row.old && row.new);
  if (data.batch) batch.placeholder = `Batch: ${data.batch}`;
  return [
    lacks && el("p", { class: "empty" }, lacks.charAt(0).toUpperCase() + lacks.slice(1)),
    lacks && bar(["Fork or replay", "fork_reader_group", { reader_group: group }], ["Reset", "reset_reader_group", { reader_group: group }], ["Process", "process", { reader_group: group }]),
    old && facts([
      ["Old", batches(old), told(old)], ["New", batches(now_), told(now_)],
      !lacks && ["The same", number(data.same), "rows that both have"],
      !lacks && ["Changed", number(data.changed), "rows with a column that differs"],
      !lacks && ["Only old", number(data.only_old), "rows that only the old output has"],
      !lacks && ["Only new", number(data.only_new), "rows that only the new output has"],
    ]),
    el("p", { class: "muted" }, said.join(" ")),
    !lacks && !rows.length && el("p", { class: "empty" }, "No row differs."),
    changed.length > 0 && section("Changed", listed(data.changed, changed, columns, "Changed rows")),
    data.only_old > 0 && section("Only in the old output", listed(data.only_old, rows.filter((row) => !row.new), columns, "Rows only in the old output")),
    data.only_new > 0 && section("Only in the new output", listed(data.only_new, rows.filter((row) => !row.old), columns, "Rows only in the new output")),
    old && others.length > 0 && section("What else was made of these events", choices(data, now)),
  ];
}

function batches({ first_batch: first, last_batch: last }) {
  return first === last ? `batch ${number(first)}` : `batches ${number(first)} to ${number(last)}`;
}

function told(run) {
  return [`of ${run.group}`, run.output, ...run.functions].filter(Boolean).join(", ");
}

function listed(count, rows, columns, caption) {
  return [
    count > rows.length && el("p", { class: "muted" }, `The first ${number(rows.length)} of ${some(count, "row")}.`),
    table([{ title: "Row", cell: (row) => `#${rows.indexOf(row) + 1}` }, ...columns.map((column, i) => ({
      title: `${column.name}, ${column.new ?? column.old}`, number: numeric.test(column.new ?? column.old), cell: (row) => cell(row, column, i),
    }))], rows, { caption }),
  ];
}

const numeric = /^(byte|short|integer|long|float|double|decimal.*)$/;

function cell(row, column, i) {
  const was = row.old && value(row.old[i], column.old);
  const is = row.new && value(row.new[i], column.new);
  if (!was || !is) return was ?? is;
  if (row.changed.includes(i)) return el("span", {}, el("del", {}, was), " → ", el("ins", {}, is));
  return column.new === null ? was : is;
}

function value(text, there) {
  if (there === null) return el("span", { class: "muted", title: "this output has no such column" }, "–");
  if (text === null) return el("span", { class: "muted", title: "null: there is no value" }, "null");
  return text === "" ? el("span", { class: "muted", title: "a text without characters" }, "empty") : el("span", { class: "value" }, text);
}

function choices({ batch: of, old, new: now_, others }, now) {
  const mine = [old, now_].find((one) => one.group === group && one.first_batch <= of && of <= one.last_batch);
  const query = { group, batch: of, output: mine?.output, key: wanted.key };
  return table([
    { title: "Reader group", cell: (one) => el("a", { href: address("group", { name: one.group }) }, one.group) },
    { title: "Batches", cell: (one) => batches(one) },
    { title: "Committed", cell: (one) => moment(one.committed_at, now) },
    { title: "Function", cell: (one) => one.functions.join(", ") || "a program's own" },
    { title: "Compare with", cell: (one) => (one.outputs.length ? one.outputs.map((output) => el("a", { class: "act", href: address("outputs", { ...query, other: one.group, other_batch: one.last_batch, other_output: output }) }, output)) : el("span", { class: "muted" }, "kept no output")) },
  ], others, { caption: "What else was made of these events" });
}
