"""The shells of the pages: HTML that loads styles and modules, beside it or in one file with it."""

import re
from base64 import b64encode
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_STYLE = re.compile(r'<link rel="stylesheet" href="assets/([\w./-]+)">')
_SCRIPT = re.compile(r'<script src="assets/([\w./-]+)"></script>')
_MODULE = re.compile(r'<script src="assets/js/(\w+\.js)" type="module"></script>')
_IMPORT = re.compile(r'^(import .* from ")\./(\w+\.js";)$', re.MULTILINE)


def modules_of(page: Path) -> list[str]:
    """Return the modules of a page, with those that they import."""
    names = _MODULE.findall(page.read_text())
    for name in names:  # which grows
        found = [one.removesuffix('";') for _, one in _IMPORT.findall(_text(f"js/{name}"))]
        names += [one for one in found if one not in names]
    return names


def in_one_file(name: str, data: str) -> str:
    """Return a page with all that it loads, and with JSON as its element `data`.

    Modules that lie in a document can't import each other by relative addresses, so an import map
    gives each a name.
    """
    page = STATIC / f"{name}.html"
    modules = ", ".join(f'"weir/{one}": "{_address(one)}"' for one in modules_of(page))
    told = data.replace("<", "\\u003c")  # or a name could end the element
    text = _STYLE.sub(lambda one: f"<style>{_text(one[1])}</style>", page.read_text())
    text = _SCRIPT.sub(lambda one: f"<script>{_text(one[1])}</script>", text)
    return _MODULE.sub(
        lambda one: (
            f'<script id="data" type="application/json">{told}</script>\n'
            f'<script type="importmap">{{"imports": {{{modules}}}}}</script>\n'
            f'<script type="module">import "weir/{one[1]}";</script>'
        ),
        text,
    )


def _address(module: str) -> str:
    """Return a module as an address."""
    text = _IMPORT.sub(r"\1weir/\2", _text(f"js/{module}"))
    return f"data:text/javascript;base64,{b64encode(text.encode()).decode()}"


def _text(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
