"""Links between the pages of the documentation lead to files and headings that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\]\(<?([^)\s>]+(?:\([^)\s]*\))?[^)\s>]*)>?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def anchor(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(heading) for heading in HEADING.findall(FENCED.sub("", page.read_text()))}


def test_every_link_of_a_page_leads_somewhere() -> None:
    links = [
        (page, link) for page in PAGES for link in LINK.findall(FENCED.sub("", page.read_text()))
    ]
    assert len(links) > 50, "the pattern finds the links"
    wrong = []
    for page, link in links:
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        if "://" in link:
            continue
        if not target.exists() or (heading and heading not in anchors(target)):
            wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert wrong == []


def test_every_module_and_file_that_a_page_names_exists() -> None:
    packages = {path.parent.name for path in (ROOT / "plugins/weir").glob("*/__init__.py")}
    named, wrong = set(), []
    for page in PAGES:
        text = FENCED.sub("", page.read_text())
        for name in re.findall(r"`(weir(?:\.\w+)+)[`(]", text):
            if name.split(".")[1] in packages:
                named.add(name)
                wrong += [f"{page.name}: {name}"] * (not is_there(name))
        for path in re.findall(r"`((?:docs|plugins|sql|tests)/[\w./-]+)`", text):
            named.add(path)
            wrong += [f"{page.name}: {path}"] * (not (ROOT / path).exists())
    assert len(named) > 40, "the patterns find the names"
    assert wrong == []


def is_there(name: str) -> bool:
    """Whether a module has this dotted name, or a module or package defines its last part."""
    path = ROOT / "plugins" / name.replace(".", "/")
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    above = path.parent
    source = above / "__init__.py" if above.is_dir() else above.with_suffix(".py")
    return source.is_file() and re.search(rf"\b{path.name}\b", source.read_text()) is not None


def test_every_code_of_an_error_that_a_page_names_exists() -> None:
    sentences = (ROOT / "tests/errors/sentences.txt").read_text()
    codes = set(re.findall(r"^(\w+) \w+$", sentences, re.MULTILINE))
    named = {code for page in PAGES for code in re.findall(r"`\[(\w+)\]`", page.read_text())}
    assert len(named) >= 5
    assert named - codes == set()
