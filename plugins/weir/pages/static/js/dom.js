// Elements. Texts are set as texts, so that markup in a name stays what somebody wrote.

// An element with attributes and children. `class`, `title` ... are attributes; a function is a listener. A child is an
// element, a text or a number; null, undefined and false are left out.
export function el(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

// The same of a drawing.
export function svg(tag, given = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), given, children);
}

function fill(made, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return made;
}

// Put new children in place of the old ones, and keep the focus where it is: on what has the same `data-key`.
export function replace(place, ...children) {
  const key = place.contains(document.activeElement) ? document.activeElement.dataset?.key : undefined;
  place.replaceChildren(...children.flat(3).filter(Boolean));
  if (key) [...place.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key)?.focus();
}
