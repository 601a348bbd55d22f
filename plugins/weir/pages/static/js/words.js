// Numbers, sizes and times as people read them. Times are UTC, as everywhere in Weir.

const grouped = new Intl.NumberFormat("en");

export function number(value) {
  return value === null || value === undefined ? "–" : grouped.format(value);
}

// A number in a few digits: 1.2 M.
export function short(value) {
  return scaled(value, ["", " k", " M", " G", " T", " P"]);
}

// A size in powers of 1,000, as Weir's settings have them.
export function size(value) {
  return value === null || value === undefined ? "–" : scaled(value, [" B", " kB", " MB", " GB", " TB", " PB"]);
}

function scaled(value, units) {
  let at = 0;
  let left = value;
  while (Math.abs(left) >= 999.5 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  const digits = at && Math.abs(left) < 9.95 ? 1 : left && Math.abs(left) < 0.995 ? 2 : 0;
  return `${left.toFixed(digits)}${units[at]}`;
}

export function some(value, what, many = `${what}s`) {
  return `${number(value)} ${value === 1 ? what : many}`;
}

// 2026-11-26 09:05:00
export function time(value) {
  return value ? new Date(value).toISOString().slice(0, 19).replace("T", " ") : "–";
}

// How long, in its largest unit: 5 s, 3 min, 2 h, 6 d.
export function span(seconds) {
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 1.5 * length || (unit === "min" && seconds >= 60)) return `${Math.round(seconds / length)} ${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}

// The seconds of a length of time as the JSON has it (ISO 8601: P1DT2H).
export function seconds(text) {
  const found = /^(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(text) ?? [];
  const [days, hours, minutes, rest] = found.slice(2).map((part) => Number(part ?? 0));
  return (found[1] ? -1 : 1) * (((days * 24 + hours) * 60 + minutes) * 60 + rest);
}

// A time as its distance from now: 3 min ago, in 2 h.
export function ago(value, now = Date.now()) {
  if (!value) return "never";
  const seconds = (now - new Date(value)) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
}
