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
