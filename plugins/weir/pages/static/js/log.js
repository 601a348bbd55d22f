// Where the log of a task is: in Airflow, beside the pages.

import { el } from "./dom.js";

// A link to it, if there is one. logs: where those of all tasks are, or null.
export function log(logs, { dag_id, run_id, task_id, map_index, try_number }) {
  if (!logs || dag_id === "by hand") return null;
  const path = [dag_id, "runs", run_id, "tasks", task_id, ...(map_index >= 0 ? ["mapped", map_index] : [])];
  return el("a", { class: "act", href: `${logs}/${path.map(encodeURIComponent).join("/")}?try_number=${try_number}` }, "Its log");
}
