// What a page is about: by the name in its address, or in words if that names nothing that there can be.

import { el } from "./dom.js";
import { address } from "./rest.js";

// Return what to say in place of the page, or nothing. what: what it is about. list: [page, text] of those that there
// are. parts: of how many a name consists.
export function lacking(what, [path, text], name, parts = 1) {
  const right = name.split("/").length === parts && !name.startsWith("/") && !name.endsWith("/");
  if (name && right) return null;
  return [
    el("p", {}, name ? `There is no ${what} ${name}: its name has two parts, as in shop/orders.` : `This page is about one ${what}, and its address names none.`),
    el("p", {}, el("a", { href: address(path) }, text)),
  ];
}

export const ofStream = (name) => lacking("stream", ["streams", "All streams"], name, 2);
