// A picture of a stream or of a reader group, whose data is in the file itself.

import { chart, unreadOf } from "./chart.js";
import { el } from "./dom.js";
import { map } from "./map.js";
import { section } from "./parts.js";
import { size, time } from "./words.js";

const { of, at, map: found, kept, unread } = JSON.parse(document.getElementById("data").textContent);
const keyMap = found && map("", found);

document.title = `${of} · Weir`;
document.body.append(el("main", {},
  el("h1", {}, of),
  el("p", { class: "muted" }, `As of ${time(at)} UTC.`),
  keyMap && section("Key space over time", keyMap.place),
  kept && section("Bytes over time", el("p", {}, `${size(kept.kept.at(-1))} kept at the end of this time${kept.next_time ? `; of what is kept now, the next retention truncates ${size(kept.next_time)}` : ""}.`),
    chart([kept.at.map((one) => new Date(one) / 1000), kept.kept, kept.truncated], [{ label: "kept", steps: true }, { label: "truncated in this time", steps: true, colour: "--warn" }],
      { title: "Bytes that were kept and truncated, over time" })),
  unread.length > 0 && section("Unread over time", unread.map(unreadOf)),
  !keyMap && !unread.length && el("p", { class: "empty" }, "It reads no stream.")));
keyMap?.again();
