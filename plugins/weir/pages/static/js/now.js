// What is wrong now: the page that one begins with.

import { formOf } from "./acts.js";
import { el } from "./dom.js";
import { page } from "./page.js";
import { said } from "./parts.js";
import { address } from "./rest.js";
import { ago, some } from "./words.js";

page({ here: "now", title: "What is wrong now", asks: () => ["now", {}], draw });

function draw({ troubles, more }, now) {
  if (!troubles.length) {
    return el("div", { class: "empty" }, el("p", {}, el("span", { class: "health good" }, el("span", { class: "dot", "aria-hidden": "true" }), el("span", {}, "Nothing is wrong."))),
      el("p", { class: "muted" }, "Runs, readers, groups, files, disks, clocks and schedules are as they should be, as far as the database knows. ",
        el("a", { href: address("streams") }, "The streams")));
  }
  const red = troubles.filter((one) => one.severity === "red").length;
  const amber = troubles.length - red;
  return [
    el("p", { class: "lead" }, [red && `${some(red, "thing")} stand${red === 1 ? "s" : ""} still or ${red === 1 ? "is" : "are"} lost`,
      amber && `${red ? amber : some(amber, "thing")} will need somebody`].filter(Boolean).join(", "),
      more && ". There is more; the view weir.troubles has all"),
    el("ul", { class: "troubles" }, troubles.map((one) => trouble(one, now))),
  ];
}

function trouble(one, now) {
  return el("li", { class: `trouble ${one.severity === "red" ? "bad" : "warn"}` },
    el("span", { class: "dot", role: "img", "aria-label": one.severity }),
    el("div", {},
      el("p", { class: "what" }, one.sentence, one.since && el("span", { class: "muted" }, ` ${when(one.since, now)}`)),
      el("p", { class: "muted" }, said(`${one.advice.charAt(0).toUpperCase()}${one.advice.slice(1)}.`)),
      el("div", { class: "acts" },
        one.page && el("a", { class: "act", href: address(one.page, one.query), "data-key": `${one.kind} ${one.subject}` }, TITLES[one.page] ?? "Show"),
        one.action && el("a", { class: "act", href: formOf(one.action, one.given) }, `${one.action.charAt(0).toUpperCase()}${one.action.slice(1).replaceAll("_", " ")} …`))));
}

const TITLES = { run: "The run", runs: "Runs", group: "The reader group", stream: "The stream", files: "Its files", retention: "Retention" };

function when(since, now) {
  return `${new Date(since) > now ? "due" : "began"} ${ago(since, now)}`;
}
