// What can be done from where one looks: links that open the form of an action, filled in. Opening one does nothing.

import { el } from "./dom.js";
import { address } from "./rest.js";

// The address of a form. action: its name. given: what is filled in, by the names of its arguments.
export function formOf(action, given = {}) {
  return address("act", { action, given: JSON.stringify(given) });
}

// A link in a row of a table.
export function act(text, action, given) {
  return el("a", { class: "act", href: formOf(action, given) }, text);
}

// A bar of them. found: [text, action, given] of each.
export function bar(...found) {
  return el("nav", { class: "acts", "aria-label": "Actions" }, found.filter(Boolean).map((one) => act(...one)));
}
