"""Every rule that is cited is in docs/semantics.md, and every proposal has its link there."""

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "docs/semantics.md"
NUMBER = r"\d+(?:\.\d+)?"
# semantics 9.3; semantics 11.5 and 11.6; semantics 13, 14 and 16.
CITED = re.compile(rf"\bsemantics(?:\.md)? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)", re.IGNORECASE)
# PDP-24, PDP-28 ..., SEP-4
PROPOSAL = re.compile(r"\b(?:PDP|SEP)-\d+\b")
LINK = re.compile(r"https://(?:github\.com/pravega|cncf\.pravega|cwiki\.apache)[^\s>]*")
RULE = re.compile(rf"^###? ({NUMBER})\.? ", re.MULTILINE)


def rules() -> list[str]:
    return RULE.findall((ROOT / PAGE).read_text())


def texts() -> dict[str, str]:
    """The text of every file that git knows, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    kinds = {".md", ".py", ".sql", ".toml", ".json"}
    paths = [ROOT / name for name in listed if Path(name).suffix in kinds]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths if path.is_file()}


def test_rules_are_numbered_in_order_and_each_once() -> None:
    numbers = [tuple(map(int, number.split("."))) for number in rules()]
    assert numbers == sorted(set(numbers))
    assert [n[0] for n in numbers if len(n) == 1] == list(range(1, 21))


def test_every_citation_names_a_rule() -> None:
    known = set(rules())
    cited = {
        (name, number)
        for name, text in texts().items()
        for found in CITED.findall(text)
        for number in re.findall(NUMBER, found)
    }
    assert len({name for name, _ in cited}) >= 10, "the pattern finds the citations"
    assert {(name, number) for name, number in cited if number not in known} == set()


def test_what_the_page_says_of_other_rules_is_there() -> None:
    text = (ROOT / PAGE).read_text()
    known = set(rules())
    referred = re.findall(rf"\(({NUMBER})\)|[Ss]ee ({NUMBER})\b|[Aa]s in ({NUMBER})", text)
    column = re.findall(rf"\| ((?:{NUMBER}(?:, )?)+) \|$", text, re.MULTILINE)
    numbers = {number for found in referred for number in found if number}
    numbers |= {number for found in column for number in re.findall(NUMBER, found)}
    assert len(numbers) > 20
    assert numbers - known == set()


def test_every_proposal_that_is_named_has_a_link_on_the_page() -> None:
    linked = set(
        re.findall(r"\[[^]]*?\b((?:PDP|SEP)-\d+)\b[^]]*\]\(<?https://", (ROOT / PAGE).read_text())
    )
    named = {one for text in texts().values() for one in PROPOSAL.findall(text)}
    assert len(named) >= 4
    assert named - linked == set()


def test_every_package_that_names_a_proposal_has_the_pages_link_in_its_docstring() -> None:
    links = {link.rstrip(")") for link in LINK.findall((ROOT / PAGE).read_text())}
    of_proposal = {one: link for link in links for one in PROPOSAL.findall(link)}
    package = Path("plugins/weir")
    for name, text in texts().items():
        if not Path(name).is_relative_to(package) or not (named := set(PROPOSAL.findall(text))):
            continue
        room = package.joinpath(*Path(name).relative_to(package).parts[:-1][:1])  # or `weir` itself
        docstring = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))
        linked = {link.rstrip(")") for link in LINK.findall(docstring or "")}
        assert linked <= links, f"{name}: a link that {PAGE} does not have"
        assert {of_proposal[one] for one in named} <= linked, f"{name}: names {named}"
