// Light or dark: as Airflow's own switch says, which lies on the same origin, else as the system does. It runs before
// anything is drawn.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let above = null; // the page of Airflow around this one
  try {
    if (parent !== window && parent.document) above = parent.document.documentElement;
  } catch { /* of another origin */ }
  root.classList.toggle("framed", parent !== window);

  function said() {
    if (above?.classList.contains("dark")) return "dark";
    if (above?.classList.contains("light")) return "light";
    try {
      const kept = localStorage.getItem("theme");
      if (kept === "dark" || kept === "light") return kept;
    } catch { /* no storage for this page */ }
    return system.matches ? "dark" : "light";
  }

  function show() {
    const mode = said();
    if (root.dataset.mode === mode) return;
    root.dataset.mode = mode;
    dispatchEvent(new CustomEvent("mode", { detail: mode }));
  }

  show();
  system.addEventListener("change", show);
  addEventListener("storage", show);
  if (above) new MutationObserver(show).observe(above, { attributes: true, attributeFilter: ["class"] });
})();
