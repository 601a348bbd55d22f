// A list that is searched by name and paged: of reader groups, of adjunct stores.

import { el } from "./dom.js";
import { page } from "./page.js";
import { pager } from "./parts.js";
import { address, given } from "./rest.js";

// here: the address of the page, and of what it asks. what: one of what is listed, in words. count(data): how many an
// answer has. draw(data, now): the elements that show them; none: what is shown when there are none at all.
export function list({ here, title, what, count, draw, none }) {
  const wanted = { search: given.get("search") ?? "", after: given.get("after") ?? "" };
  const before = []; // where the pages before this one begin
  let typing = null;
  const search = el("input", {
    type: "search", placeholder: "Search by name", "aria-label": "Search by name (/)", value: wanted.search,
    maxlength: 130, spellcheck: "false", autocomplete: "off",
    input: () => {
      clearTimeout(typing);
      typing = setTimeout(() => { before.length = 0; change({ search: search.value.trim(), after: "" }); }, 200);
    },
  });
  const shown = page({
    here,
    title,
    asks: () => [here, wanted],
    draw: (data, now) => (count(data) ? [draw(data, now), pages(data)] : el("div", { class: "empty" },
      wanted.search ? el("p", {}, `No ${what} is like this.`) : none)),
    tools: el("div", { class: "tools", role: "search" }, search),
  });

  const pages = (data) => pager({ here: count(data), total: data.total, what, before, after: wanted.after, next: data.next, go: (after) => change({ after }) });

  function change(changed) {
    Object.assign(wanted, changed);
    history.replaceState(null, "", address(here, wanted));
    shown.again();
  }
}
