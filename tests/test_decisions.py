"""docs/decisions/README.md lists every decision, and what is cited is there."""

import re
from pathlib import Path

from tests.test_semantics import texts

FOLDER = Path(__file__).parents[1] / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text()
ROW = re.compile(r"^\| (\d+) \| \[(.+)\]\((.+\.md)\) \|$", re.M)
# docs/decisions/0025; decision 25
CITED = re.compile(r"\bdecisions/0*(\d+)|\bdecisions? (\d+)\b")


def test_every_decision_is_listed_once_by_its_number_and_title() -> None:
    files = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
    titles = [path.read_text().partition("\n")[0] for path in files]
    expected = [(f"# {number}. {title}", name) for number, title, name in ROW.findall(INDEX)]
    assert expected == [(title, path.name) for title, path in zip(titles, files, strict=True)]
    assert all(path.name.startswith(f"{title[2:].partition('.')[0]:0>4}-")
               for title, path in zip(titles, files, strict=True))  # fmt: skip


def test_numbers_follow_each_other_but_for_those_that_the_page_names() -> None:
    numbers = {int(number) for number, *_ in ROW.findall(INDEX)}
    [line] = re.findall(r"^Numbers that are gone, or were never given: ([^.]+)\.$", INDEX, re.M)
    gone: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:\s+to\s+(\d+))?", line):
        gone |= set(range(int(first), int(last or first) + 1))
    assert numbers.isdisjoint(gone)
    assert numbers | gone == set(range(1, max(numbers) + 1))


def test_every_decision_that_is_cited_is_listed() -> None:
    listed = {number for number, *_ in ROW.findall(INDEX)}
    cited = {
        (name, a or b) for name, text in texts().items() for a, b in CITED.findall(text.lower())
    }
    assert len({name for name, _ in cited}) > 20, "the pattern finds the citations"
    assert {(name, number) for name, number in cited if number not in listed} == set()
