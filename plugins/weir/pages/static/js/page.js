// What all pages share: the head with its links, the age of what is shown, errors, and asking again.

import { el, replace } from "./dom.js";
import { address, ask, Refused } from "./rest.js";
import { span } from "./words.js";

const EVERY = 10_000; // milliseconds between two questions
const COUNTED = 30_000; // and between two of what is wrong
const PAGES = [["now", "Now"], ["streams", "Streams"], ["groups", "Reader groups"], ["retention", "Retention"], ["time", "Over time"], ["runs", "Runs"], ["stores", "Adjunct stores"], ["tables", "More"]];

// Draw a page and keep it true.
//
// lacks: what to say in place of it all, if its address does not say what it is about; then nothing is asked.
// here: which of the links in the head is this page's. title: what it is about. asks: a function that returns
// [path, query] of what to ask. draw: a function of the data and of when it was asked, which returns what to show.
// tools: elements above it that stay. once: ask only when somebody wants it, because the answer is dear. Returns { again }: a function that asks at once, as after another search.
export function page({ here, title, asks, draw, tools = [], once = false, lacks = null }) {
  const name = document.title.split(" · ").pop();
  if (title) document.title = `${title} · ${name}`;
  const age = el("span", { class: "age", role: "status" });
  const wrong = el("span", { class: "count", hidden: true });
  const error = el("div", { class: "error", role: "alert", hidden: true });
  const shown = el("div", { class: "shown", "aria-busy": "true" }, waiting());
  const reload = el("button", { class: "quiet", type: "button", title: "Ask again now (r)", click: () => again() }, "Refresh");
  document.body.append(
    el("a", { class: "skip", href: "#content" }, "To the content"),
    el("header", {},
      el("a", { class: "brand", href: address("now") }, el("img", { src: "assets/weir.svg", alt: "" }), "Weir", wrong),
      el("nav", { "aria-label": "Pages" }, PAGES.map(([path, text]) =>
        el("a", { href: address(path), "aria-current": path === here ? "page" : null }, text))),
      el("span", { class: "fresh" }, age, reload)),
    el("main", { id: "content", tabindex: "-1" }, title && el("h1", {}, title), !lacks && tools, error, shown));
  if (lacks) {
    reload.hidden = true;
    replace(shown, el("div", { class: "empty" }, lacks));
    shown.setAttribute("aria-busy", "false");
    return { again() {} };
  }

  let tag = null;
  let at = null; // when what is shown was true
  let asking = null;
  let timer = null;

  async function again() {
    clearTimeout(timer);
    asking?.abort();
    const mine = (asking = new AbortController());
    shown.setAttribute("aria-busy", "true");
    try {
      const [path, query] = asks();
      const found = await ask(path, query, mine.signal);
      const what = `${path} ${JSON.stringify(query)} ${found.tag}`;
      at = found.at;
      error.hidden = true;
      if (what !== tag) {
        tag = what;
        replace(shown, draw(found.data, found.at));
      }
    } catch (raised) {
      if (raised.name === "AbortError") return;
      if (!(raised instanceof Refused)) console.error(raised);
      const sentence = raised instanceof Refused ? raised.message : `This page has a defect: ${raised.message}`;
      replace(error, el("p", {}, sentence), at !== null && el("p", { class: "muted" }, "Below is what was true before."));
      error.hidden = false;
      if (at === null) replace(shown);
    }
    if (mine !== asking) return;
    shown.setAttribute("aria-busy", "false");
    tell();
    if (!once) timer = setTimeout(again, EVERY);
  }

  function tell() {
    const seconds = at === null ? 0 : (Date.now() - at) / 1000;
    age.textContent = at === null ? "" : seconds < 5 ? "just now" : `${span(seconds)} old`;
    age.classList.toggle("old", seconds > 60);
  }

  // The number beside the name: of what is wrong, wherever one is.
  async function count() {
    if (document.hidden) return;
    const found = await ask("now").catch(() => null); // the page itself says what is wrong with asking
    if (!found) return;
    const { troubles, more } = found.data;
    wrong.hidden = !troubles.length;
    wrong.textContent = more ? `${troubles.length}+` : troubles.length;
    wrong.classList.toggle("red", troubles.some((one) => one.severity === "red"));
    wrong.title = `${wrong.textContent} to look at`;
  }

  count();
  setInterval(count, COUNTED);
  setInterval(tell, 1000);
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : once || again()));
  document.addEventListener("keydown", (event) => key(event, again));
  again();
  return { again };
}

// r asks again; / goes to the search; j and k go from row to row.
function key(event, again) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape" && typing) return typing.blur();
  if (typing) return;
  if (event.key === "r") again();
  else if (event.key === "/" && document.querySelector("input[type=search]")) {
    event.preventDefault();
    document.querySelector("input[type=search]").focus();
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("main [data-key]")];
    const now = rows.indexOf(document.activeElement);
    const next = now < 0 ? 0 : now + (event.key === "j" ? 1 : -1);
    rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus();
  }
}

function waiting() {
  return el("div", { class: "waiting", "aria-hidden": "true" }, Array.from({ length: 6 }, () => el("div", {})));
}
