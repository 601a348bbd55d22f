"""A sentence says what to do in the words of the place where it is read."""

import ast
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import weir
from tests.errors.sentences import ROOT, Reference, references, sentences
from weir.front_ends import (
    PLACEHOLDER,
    FrontEnd,
    called,
    command,
    do,
    give,
    leave_out,
    speaking,
    typed,
)
from weir.operations.form import is_required, parse
from weir.operations.jobs import FORMS
from weir.terminal.__main__ import parser
from weir.terminal.options import given_arguments

LIBRARY = ROOT / "plugins" / "weir"
SOURCES = sorted(LIBRARY.rglob("*.py"))
# What these rooms say is read in one place only, so they may use its words.
OF_ONE_PLACE = ("airflow", "terminal", "local")
# What it says is in weir.troubles, which tests/pages/test_now.py types.
OF_THE_DATABASE = LIBRARY / "operations" / "examination.py"
ARGUMENTS = {one.name for form in FORMS.values() for one in fields(form)}
# Values that are computed, by the pattern of what is allowed; else any text will do.
COMPUTED = {
    "stream": "shop/orders", "streams": "shop/orders", "reader_group": "billing",
    "new_reader_group": "billing2", "adjunct_store": "shop/prices", "adjunct_stores": "shop/prices",
}  # fmt: skip


@cache
def used() -> list[tuple[str, Reference]]:
    """Everything that the library says in the words of a front end, with its place."""
    return [
        (f"{path.relative_to(ROOT)}:{line}", one)
        for path in SOURCES
        for line, one in references(path.read_text())
        if (path, one.subject) != (OF_THE_DATABASE, None)
    ]


def arguments_of(one: Reference) -> dict[str, Any]:
    """The arguments of an operation with an example for each computed value."""
    examples = {n: COMPUTED.get(n, "x") if v is None else v for n, v in one.arguments.items()}
    lists = [o.name for o in fields(FORMS[str(one.subject)]) if "items" in o.metadata["schema"]]
    return {n: [v] if n in lists and isinstance(v, str) else v for n, v in examples.items()}


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module, without its docstrings and its descriptions of forms."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_a_sentence_names_only_operations_and_arguments_that_exist() -> None:
    assert len(used()) > 20
    for place, one in used():
        if one.function == "do":
            known = {known.name: known for known in fields(FORMS[str(one.subject)])}
            needed = {name for name, argument in known.items() if is_required(argument)}
            assert needed <= set(one.arguments) <= set(known), f"{place}: {one}"
        elif one.function == "give":
            assert set(one.arguments) <= ARGUMENTS, f"{place}: {one}"
        else:
            assert one.subject is None or one.subject in ARGUMENTS, f"{place}: {one}"


def test_what_a_sentence_says_in_a_terminal_can_be_typed() -> None:
    command_line = parser()
    for place, one in used():
        if one.function != "do":
            continue
        job, arguments = str(one.subject), arguments_of(one)
        with speaking("terminal", FORMS):
            typed = do(job, **arguments)
        line = re.fullmatch("run `weir (.*)`", typed)
        assert line, f"{place}: {typed}"
        given = command_line.parse_args(shlex.split(line[1]))
        assert given.job == job, place
        assert given_arguments(FORMS[job], given) == arguments, place
        # A person replaces what is in capitals.
        written = {
            name: value
            for name, value in arguments.items()
            if not PLACEHOLDER.fullmatch(
                ", ".join(value) if isinstance(value, list) else str(value)
            )
        }
        for name in arguments.keys() - written.keys():
            assert one.arguments[name] == arguments[name], f"{place}: {name} is computed"
        if is_complete(job, written):
            parse(FORMS[job], written)


def is_complete(job: str, arguments: Mapping[str, Any]) -> bool:
    """Whether all that an operation needs is given."""
    return all(one.name in arguments for one in fields(FORMS[job]) if is_required(one))


def test_no_text_has_the_words_of_one_front_end() -> None:
    jobs, commands = "|".join(FORMS), "|".join(map(command, FORMS))
    words = re.compile(
        rf"(?<!_)weir_({jobs})\b|`weir ({commands})\b|\bset allow_|\bDry run\b|(^|[ `])--[a-z]"
    )
    # The descriptions of arguments are not sentences.
    others = [one for one in SOURCES if one.parent.name not in (*OF_ONE_PLACE, "operations")]
    titles = {one.metadata["title"] for form in FORMS.values() for one in fields(form)}
    found = [(str(p.relative_to(ROOT)), said) for p in others for said in texts(p)]
    found = [(file, said) for file, said in found if said not in titles]
    places = [(one.place.split(":")[0], one.text) for one in sentences()]
    found += [(file, text) for file, text in places if not {*OF_ONE_PLACE} & {*file.split("/")}]
    wrong = {(file, text) for file, text in found if words.search(text)}
    of_jobs = "plugins/weir/operations/runner.py"  # the command line of a job's own file
    assert {one for one in wrong if one[0] != of_jobs} == {
        ("plugins/weir/front_ends.py", "--key"),
        ("plugins/weir/front_ends.py", "--output"),
        ("plugins/weir/front_ends.py", "--no-"),
        ("plugins/weir/inputs/append.py", "weir_ingest"),  # the name of a writer
    }


def test_what_describes_an_argument_is_read_in_forms_and_in_a_terminal() -> None:
    described = [one.metadata["description"] for form in FORMS.values() for one in fields(form)]
    described += [str(form.__doc__) for form in FORMS.values()]
    words = re.compile(rf"weir_({'|'.join(FORMS)})\b|`weir |(^|[ `])--[a-z]")
    assert [text for text in described if words.search(text)] == []


@pytest.mark.parametrize(
    ("front_end", "to_do", "to_give", "to_leave_out", "name"),
    [
        (
            "form",
            "trigger weir_reset_reader_group (Reader group: billing, To: head, Repeat: on)",
            'switch "Repeat" on',
            'leave "To" empty',
            '"To"',
        ),
        (
            "terminal",
            "run `weir reset-reader-group billing --to head --allow-repeat`",
            "add --allow-repeat",
            "leave --to out",
            "--to",
        ),
        (
            "program",
            "call weir.open().reset_reader_group(reader_group='billing', to='head', "
            "allow_repeat=True)",
            "pass allow_repeat=True",
            "leave to out",
            "to",
        ),
        (
            "dag",
            "use ResetReaderGroupOperator(reader_group='billing', to='head', allow_repeat=True)",
            "pass allow_repeat=True",
            "leave to out",
            "to",
        ),
    ],
)
def test_each_front_end_has_its_words(
    front_end: FrontEnd, to_do: str, to_give: str, to_leave_out: str, name: str
) -> None:
    with speaking(front_end, FORMS, "reset_reader_group"):
        said = do("reset_reader_group", reader_group="billing", to="head", allow_repeat=True)
        assert said == to_do
        assert (give(allow_repeat=True), leave_out("to"), called("to")) == (
            to_give, to_leave_out, name,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "arguments", "typed"),
    [
        ("create_stream", {"stream": "shop/orders", "routing_key": "lower(sku)"},
         "weir create shop/orders --key 'lower(sku)'"),
        ("ingest", {"stream": "shop/orders", "files": ["a.csv", "b c.csv"]},
         "weir ingest a.csv 'b c.csv' --stream shop/orders"),
        ("process", {"reader_group": "billing", "function": "shop:bill", "outputs": ["stream:a/b"]},
         "weir process billing shop:bill --output stream:a/b"),
        ("truncate_stream", {"stream": "shop/orders", "cut": "tail", "dry_run": False},
         "weir truncate-stream shop/orders --cut tail --no-dry-run"),
        ("put_back", {"reader_group": "billing", "parameters": {"least": 1}},
         "weir put-back billing --parameters '{\"least\": 1}'"),
        ("define_adjunct_store", {"adjunct_store": "shop/prices", "stream": "shop/changes"},
         "weir define-adjunct-store shop/prices --stream shop/changes"),
    ],
)  # fmt: skip
def test_a_command_is_typed_as_the_terminal_takes_it(
    operation: str, arguments: dict[str, Any], typed: str
) -> None:
    with speaking("terminal", FORMS):
        assert do(operation, **arguments) == f"run `{typed}`"
    given = parser().parse_args(shlex.split(typed)[1:])
    assert given_arguments(FORMS[operation], given) == arguments


def test_what_is_no_argument_of_the_operation_keeps_its_name() -> None:
    # a setting in a file of declarations
    with speaking("form", FORMS, "apply"):
        assert give(on_gap="skip") == "set on_gap to skip"
        assert called("target_rate") == "target_rate"
    with speaking("terminal", FORMS, "apply"):
        assert give(on_gap="skip") == "set on_gap to skip"
        assert give(allow_loss=True) == "add --allow-loss"
        assert leave_out("end") == "leave end out"


def test_an_operation_is_called_in_a_program_as_a_method() -> None:
    said = do("create_reader_group", reader_group="billing", streams=["shop/orders"])
    assert said == (
        "call weir.open().create_reader_group(reader_group='billing', streams=['shop/orders'])"
    )
    assert all(hasattr(weir.StreamStore, operation) for operation in FORMS)


def test_a_dag_has_other_names_where_airflow_has_taken_them() -> None:
    with speaking("dag", FORMS, "process"):
        assert give(retries=3) == "pass batch_retries=3"
        assert called("retries") == "batch_retries"
        assert do("create_stream", stream="a/b", owner="shop") == (
            "use CreateStreamOperator(stream='a/b', owner_role='shop')"
        )


def test_a_process_speaks_as_a_program_unless_its_entry_point_says_otherwise() -> None:
    assert called("to") == "to"
    with speaking("terminal", FORMS, "reset_reader_group"):
        with speaking("form", FORMS, "reset_reader_group"):
            assert called("to") == '"To"'
        assert called("to") == "--to"
    assert called("to") == "to"


HOSTILE = (
    "-x", "--no-dry-run", "-", "a b", "it's", "$(date)", "\x1b[2J", "a\nb", "\u202etxt.exe",
    "a\x9bb", "back\\slash\x07", "it's\x07", "-\x07",
)  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
def test_a_command_says_what_it_was_given_whatever_that_is(value: str) -> None:
    command_line = parser()
    for job, arguments in (
        ("erase", {"stream": "a/b", "reason": value, "keys": [value, "b"]}),
        ("ingest", {"files": [value], "stream": "a/b"}),
    ):
        line = typed(job, arguments)
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", line)
        shell = ["bash", "-c", f"printf '%s\\0' {line}"]
        environ = {**os.environ, "LC_ALL": "C.UTF-8"}
        read = subprocess.run(shell, capture_output=True, check=True, env=environ).stdout
        words = read.decode().split("\0")[1:-1]
        given = command_line.parse_args(words)
        assert given_arguments(FORMS[job], given) == arguments


def test_words_of_blocks_that_overlap_in_threads_end_with_them() -> None:
    first, second = speaking("dag", FORMS), speaking("form", FORMS)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert do("upkeep") == "trigger weir_upkeep"
    second.__exit__(None, None, None)
    assert do("upkeep") == "call weir.open().upkeep()"
