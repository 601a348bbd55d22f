// What the next run of retention would do.

import { el, replace } from "./dom.js";
import { page } from "./page.js";
import { facts, moment, section, table } from "./parts.js";
import { address, ask, given } from "./rest.js";
import { number, size, some } from "./words.js";

const ROWS = 200; // that are shown of a table
let most = 100; // streams that are looked at without being asked to; each costs the database some milliseconds
let walk = 0; // which answer is being continued: a later one takes its place

const WHEN = [["0", "Now"], ["1", "By tonight, 0:00 UTC"], ["7", "In a week"]];
const wanted = { days: given.get("days") ?? "0" };
const when = el("select", { "aria-label": "When", change: () => { wanted.days = when.value; history.replaceState(null, "", address("retention", wanted)); shown.again(); } },
  WHEN.map(([days, text]) => el("option", { value: days }, text)));
when.value = wanted.days;

const shown = page({ here: "retention", title: "What retention would truncate", asks: () => ["retention", wanted], draw, tools: el("div", { class: "tools" }, when) });

// Draw what was asked, and go on asking for the streams that follow.
function draw(data, now) {
  const place = el("div", {});
  const found = [...data.decisions];
  const mine = (walk += 1);
  let next = data.next;
  const show = () => replace(place, content(found, data, next, now, more));
  const more = () => { most = data.due; follow(); };

  async function follow() {
    show();
    while (next && found.length < most && mine === walk) {
      try {
        const answer = await ask("retention", { ...wanted, after: next });
        found.push(...answer.data.decisions);
        next = answer.data.next;
      } catch (raised) {
        if (mine === walk) place.prepend(el("div", { class: "error", role: "alert" }, el("p", {}, raised.message)));
        return;
      }
      if (mine === walk) show();
    }
  }

  follow();
  return place;
}

function content(found, { due }, next, now, more) {
  if (!due) {
    return el("div", { class: "empty" }, el("p", {}, "There is nothing to decide: nothing has changed since retention decided last."),
      el("p", { class: "muted" }, "A stream keeps everything until its setting retention says otherwise: ",
        el("code", {}, "weir update-stream shop/orders --retention consumed"), "."));
  }
  const going = found.filter((one) => one.events > 0).sort((a, b) => lostOf(b) - lostOf(a) || b.events - a.events);
  const staying = found.filter((one) => !one.events);
  const losing = going.filter((one) => lostOf(one) > 0);
  const lost = losing.reduce((all, one) => all + lostOf(one), 0);
  return [
    el("p", { class: "lead" }, el("span", { class: `health ${lost ? "bad" : "good"}` }, el("span", { class: "dot", "aria-hidden": "true" }),
      el("span", {}, lost ? `groups would lose ${some(lost, "unread event")} of ${some(losing.length, "stream")}` : "nobody would lose an unread event",
        next && ", as far as is known"))),
    facts([
      ["Would go", some(sum(going, "events"), "event"), size(sum(going, "bytes"))],
      ["From", some(going.length, "stream"), staying.length > 0 && `${number(staying.length)} would stay as ${staying.length === 1 ? "it is" : "they are"}`],
      ["Looked at", `${number(found.length)} of ${number(due)}`, next && found.length < most ? "goes on" : "streams with something to decide"],
    ]),
    next && found.length >= most && el("p", {}, el("button", { type: "button", click: more }, `Look at all ${number(due)}`),
      el("span", { class: "muted" }, " Those with a maximum were looked at first.")),
    wanted.days !== "0" && el("p", { class: "muted" }, "As retention would decide then, if until then nothing is appended, read or released."),
    section("What would go", rows(going, now, "Nothing would be truncated.")),
    staying.length > 0 && section("What would stay, and why", rows(staying, now, "")),
  ];
}

function rows(found, now, none) {
  const goes = found.some((one) => one.events > 0);
  return [table([
    { title: "Stream", cell: (one) => el("a", { class: "name", href: address("stream", { name: one.stream }), "data-key": one.stream }, one.stream) },
    ...(goes ? [
      { title: "Would go", number: true, cell: (one) => [some(one.events, "event"), el("small", {}, size(one.bytes))] },
      { title: "Who loses unread events", cell: losers },
    ] : []),
    { title: "Why", cell: (one) => [one.reason, el("small", {}, `${one.retention}: ${one.rule.replaceAll("_", " ")}`)] },
    { title: "Held back by", cell: (one) => groups(one.held_by.map((name) => [name])) },
    { title: "Due", cell: (one) => moment(one.due_at, now) },
  ], found.slice(0, ROWS), { caption: goes ? "What would go" : "What would stay", none }),
  found.length > ROWS && el("p", { class: "muted" }, `These are ${number(ROWS)} of ${number(found.length)}; the view weir.next_retention has all.`)];
}

function losers(one) {
  const all = [...Object.entries(one.lost), ...Object.entries(one.lost_to_others)].filter(([, events]) => events > 0);
  if (!all.length) return [el("span", { class: "muted" }, "nobody"), timedOut(one)];
  return [el("span", { class: "state failed" }, groups(all.sort((a, b) => b[1] - a[1]).map(([name, events]) => [name, ` ${number(events)}`]))), timedOut(one)];
}

function timedOut(one) {
  return one.timed_out.length > 0 && el("small", {}, `not waited for: ${one.timed_out.join(", ")}`);
}

// Links to groups, each with what follows it; of many only the first.
function groups(found) {
  if (!found.length) return el("span", { class: "muted" }, "nobody");
  const shown = found.slice(0, 3).map(([name, more], i) => [i > 0 && ", ", el("a", { href: address("group", { name }) }, name), more]);
  return [shown, found.length > 3 && el("small", {}, `and ${number(found.length - 3)} more`)];
}

function lostOf(one) {
  return [...Object.values(one.lost), ...Object.values(one.lost_to_others)].reduce((a, b) => a + b, 0);
}

function sum(found, what) {
  return found.reduce((all, one) => all + one[what], 0);
}
