// What the pages ask: the JSON below `api`, of the installation that this page is about.

const asked = new URLSearchParams(location.search);
const connection = asked.get("conn_id") ?? "";

export const given = asked;

// The token of `weir ui` comes after #, which is not sent; it is kept for this address, and taken out of what is shown.
const KEPT = "weir-token";
const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1] ?? kept();
if (location.hash.startsWith("#token=")) {
  try {
    localStorage.setItem(KEPT, token);
  } catch { /* then only this page has it */ }
  history.replaceState(null, "", location.pathname + location.search);
}

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

// The address of another page, or of an address below `api`, with what is given and this page's connection.
export function address(path, query = {}) {
  const all = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  if (connection) all.set("conn_id", connection);
  const text = all.toString();
  return path + (text ? `?${text}` : "");
}

// Ask, and return { data, tag, at }. The browser keeps answers and asks by their ETags, so what has not changed is not
// sent again. Raises Refused with a sentence for people.
export async function ask(path, query = {}, signal = undefined) {
  let answer;
  try {
    answer = await fetch(address(`api/${path}`, query), {
      signal, headers: { accept: "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer. It may be restarting; this page asks again.");
  }
  const body = await answer.json().catch(() => null);
  signal?.throwIfAborted(); // also while it was read
  if (!answer.ok) throw new Refused(answer.status, sentenceOf(answer.status, body));
  return { data: body, tag: answer.headers.get("etag"), at: Date.now() };
}

function sentenceOf(status, body) {
  if (status === 401 && token) return "This address is of an earlier `weir ui`: open the one that it printed last.";
  if (status === 401) return "You are not logged in, or no longer: log in, then load this page again.";
  if (status === 403) return "You may not see this. Whoever administers this installation can let you.";
  const said = body?.error?.sentence ?? (typeof body?.detail === "string" ? body.detail : "");
  if (said) return said.charAt(0).toUpperCase() + said.slice(1);
  return `The server answered ${status} and did not say why; its log does.`;
}
