"""Elements of a picture as SVG text, with the colours for light and dark backgrounds. Pure."""

import re
from xml.etree.ElementTree import Element, SubElement, tostring

LETTER = 6.6  # the width of a letter of 12 px on average, in px
CHANGES = ("policy", "scale", "roll", "cut")
LINES = 6  # kinds of lines of positions
# What XML cannot hold, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_LIGHT = {
    "ground": "#ffffff", "ink": "#1f2328", "quiet": "#59636e", "line": "#d1d9e0",
    "rate0": "#eceff3", "rate1": "#d3e5f5", "rate2": "#a6cbe8", "rate3": "#63a4d4",
    "rate4": "#fdc382", "rate5": "#ee7f33", "rate6": "#b3370c", "cool4": "#3b86c0",
    "cool5": "#1f639f", "cool6": "#0d3f73", "scale": "#b1203b", "roll": "#6f42c1",
    "policy": "#0a7d4f", "cut": "#59636e",
    "line0": "#c2410c", "line1": "#a21b74", "line2": "#00684a", "line3": "#7a5200",
    "first": "#59636e", "second": "#c2500f",
}  # fmt: skip
_DARK = {
    "ground": "#0d1117", "ink": "#e6edf3", "quiet": "#9198a1", "line": "#30363d",
    "rate0": "#1c2229", "rate1": "#16324b", "rate2": "#1d4d75", "rate3": "#2f78b0",
    "rate4": "#9a5a1c", "rate5": "#d9781f", "rate6": "#ffb86b", "cool4": "#4a97d2",
    "cool5": "#7db9e8", "cool6": "#bfe0fa", "scale": "#ff7b8e", "roll": "#b392f0",
    "policy": "#56d39b", "cut": "#9198a1",
    "line0": "#ff8c42", "line1": "#ff8fd0", "line2": "#3fe0a8", "line3": "#ffd24a",
    "first": "#9198a1", "second": "#ff9a4d",
}  # fmt: skip


def _variables(colours: dict[str, str]) -> str:
    return "svg{" + ";".join(f"--{name}:{colour}" for name, colour in colours.items()) + "}"


_STYLE = "\n".join(
    [
        _variables(_LIGHT),
        "@media (prefers-color-scheme: dark){" + _variables(_DARK) + "}",
        *(f".rate{i}{{fill:var(--rate{i})}}" for i in range(7)),
        *(f".cool{i}{{fill:var(--cool{i})}}" for i in range(4, 7)),
        "text{fill:var(--ink);font:12px Helvetica,Arial,sans-serif}",
        ".title{font-size:17px;font-weight:bold}.heading{font-size:13px;font-weight:bold}",
        ".quiet{fill:var(--quiet)}.ground{fill:var(--ground)}",
        ".edge{fill:none;stroke:var(--ground)}.grid{stroke:var(--line);stroke-width:1;fill:none}",
        ".axis{stroke:var(--quiet);stroke-width:1;fill:none}",
        ".name{paint-order:stroke;stroke:var(--ground);stroke-width:3px;stroke-linejoin:round;"
        "stroke-opacity:.95}",
        ".bold{font-weight:bold}",
        *(f".{one}{{stroke:var(--{one});fill:var(--{one})}}" for one in CHANGES),
        *(f"line.{one}{{stroke-dasharray:5 3;stroke-width:1.2}}" for one in CHANGES),
        *(f"text.{one}{{stroke:none;font-size:11px}}" for one in CHANGES),
        ".hollow{fill:var(--ground);stroke-width:1.5}",
        ".head{stroke:var(--ink);stroke-width:3;fill:none}.hatch{stroke:var(--ink)}",
        ".halo{stroke:var(--ground);stroke-width:5;stroke-opacity:.85;fill:none}",
        *(
            f".p{i}{{stroke:var(--line{i % 4});stroke-dasharray:{dashes};stroke-width:2.6;"
            "fill:none}"
            for i, dashes in enumerate(("none", "9 3", "3 2", "12 3 3 3", "6 6", "2 4"))
        ),
        ".veil{fill:var(--ground);fill-opacity:.55}",
        ".first,.second{fill:none;stroke-width:2}",
        ".first{stroke:var(--first);stroke-dasharray:6 3}.second{stroke:var(--second)}",
        ".limit{stroke:var(--scale);stroke-width:1.2;stroke-dasharray:2 3}",
    ]
)


def document(width: float, height: float, title: str, description: str) -> Element:
    """Return the root of a picture, with its style, its ground and what a screen reader says."""
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}",
            "role": "img", "aria-labelledby": "title desc",
        },
    )  # fmt: skip
    SubElement(root, "title", id="title").text = clean(title)
    SubElement(root, "desc", id="desc").text = clean(description)
    SubElement(root, "style").text = "\n" + _STYLE + "\n"
    pattern = SubElement(
        SubElement(root, "defs"), "pattern", id="truncated", width="7", height="7",
        patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
    )  # fmt: skip
    SubElement(
        pattern, "line", {"class": "hatch"}, x1="0", y1="0", x2="0", y2="7",
        **{"stroke-width": "2", "stroke-opacity": ".4"},
    )  # fmt: skip
    rect(root, 0, 0, width, height, "ground")
    return root


def written(root: Element) -> str:
    """Return a picture as text."""
    return tostring(root, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)


def rect(
    parent: Element, x: float, y: float, width: float, height: float, kind: str, **more: str
) -> Element:
    """Add a rectangle."""
    return SubElement(
        parent, "rect", {"class": kind}, x=_n(x), y=_n(y), width=_n(max(width, 0.0)),
        height=_n(max(height, 0.0)), **more,
    )  # fmt: skip


def line(parent: Element, x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    """Add a line."""
    return SubElement(
        parent, "line", {"class": kind}, x1=_n(x1), y1=_n(y1), x2=_n(x2), y2=_n(y2)
    )  # fmt: skip


def path(parent: Element, data: str, kind: str) -> Element:
    """Add a path."""
    return SubElement(parent, "path", {"class": kind}, d=data)


def text(
    parent: Element, x: float, y: float, content: str, kind: str = "", *, anchor: str = "start"
) -> Element:
    """Add a text; `anchor`: which end of it lies at x."""
    element = SubElement(parent, "text", x=_n(x), y=_n(y))
    if kind:
        element.set("class", kind)
    if anchor != "start":
        element.set("text-anchor", anchor)
    element.text = clean(content)
    return element


def group(parent: Element, tooltip: str) -> Element:
    """Add a group that shows a text when the mouse is over it."""
    found = SubElement(parent, "g")
    SubElement(found, "title").text = clean(tooltip)
    return found


def width_of(content: str) -> float:
    """Return about how wide a text is."""
    return LETTER * len(content)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
