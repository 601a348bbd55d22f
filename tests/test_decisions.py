"""docs/decisions/README.md lists every decision with its status."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text()
ROW = re.compile(r"^\| (\d+) \| \[(.+)\]\((.+\.md)\) \| (.+) \|$", re.M)
STATUS = re.compile(r"(?:in force|superseded by [^,]+)(?:, amended by .+)?")


def test_every_decision_is_listed_once_by_its_number_and_title() -> None:
    files = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
    titles = [path.read_text().partition("\n")[0] for path in files]
    expected = [(f"# {number}. {title}", name) for number, title, name, _ in ROW.findall(INDEX)]
    assert expected == [(title, path.name) for title, path in zip(titles, files, strict=True)]
    assert all(path.name.startswith(f"{title[2:].partition('.')[0]:0>4}-")
               for title, path in zip(titles, files, strict=True))  # fmt: skip


def test_numbers_follow_each_other_but_for_those_that_the_page_names() -> None:
    numbers = [int(number) for number, *_ in ROW.findall(INDEX)]
    missing = set(range(1, numbers[-1] + 1)) - set(numbers)
    never = {int(one) for one in re.findall(r"Number (\d+) was never given", INDEX)}
    assert missing == never


def test_a_status_names_later_decisions_by_number_and_file() -> None:
    names = {number: name for number, _, name, _ in ROW.findall(INDEX)}
    for number, _, _, status in ROW.findall(INDEX):
        assert STATUS.fullmatch(status), f"{number}: {status}"
        for later, file in re.findall(r"\[(\d+)\]\(([^)]*)\)", status):
            assert names[later] == file
            assert int(later) > int(number)
