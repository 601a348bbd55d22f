// What is at an address that no page has.

import { el } from "./dom.js";
import { page } from "./page.js";
import { address } from "./rest.js";

page({ here: "", title: "There is no such page", asks: () => [], draw: () => [], lacks: [
  el("p", {}, "No page of Weir has this address. Perhaps a letter is missing, or it is from another version."),
  el("p", {}, el("a", { href: address("streams") }, "All streams")),
] });
