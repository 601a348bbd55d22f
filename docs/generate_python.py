"""Writes docs/python.md: what programs use, as its signatures and docstrings describe it; and the
stubs by which type checkers and editors see the methods and operators that are made of forms.

`python -m docs.generate_python` needs no server. tests/programs/test_public_api.py holds both.
"""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, get_args, get_type_hints, is_typeddict

import weir
import weir.spark
from weir import airflow, errors
from weir.consumers.consumer import Consumed
from weir.consumers.engine import Adjuncts
from weir.consumers.reader import Reader
from weir.controller.transactions import Committed
from weir.front_ends import RENAMED
from weir.operations.jobs import ACTIONS, FORMS
from weir.programs import methods
from weir.queries.history.lineage import Step
from weir.reader_groups.batches.reading import Options

TARGET = Path(__file__).parent / "python.md"
STUB = Path(methods.__file__).with_suffix(".pyi")
OPERATORS = Path(airflow.__file__).with_name("actions.pyi")
JOBS = "weir.spark_jobs."
DAG_FUNCTIONS = Path(airflow.__file__).with_name("dag_functions.pyi")

INTRODUCTION = """\
# Python

<!-- Made by `make docs` from the docstrings. -->

What programs use: the module `weir`, the installation that `weir.open` returns, and `weir.spark`.
Whatever is not on this page may change with every version. [recipes.md](recipes.md) and
[consumers.md](consumers.md) have whole programs, [semantics.md](semantics.md) the rules. `Settings`
is `weir.Settings`, and a `Cut` is a stream cut, such as `{"0.0": 12, "5.1": "future"}`.
"""
ABOUT = {
    "The module": "",
    "An opened installation": "",
    "Actions": "The methods of `weir.StreamStore` that forms and the command `weir` have, too.",
    "Spark": "What `weir.spark` has. It needs the extra `spark`.",
    "What calls take and return": "",
    "Reports": "What actions return, which the view weir.job_runs has, too.",
    "Errors": "All have a stable `code`. Programs match it, and never the sentence.",
}
# Attributes of an opened installation, and of others, that are there for Weir's own packages.
_INNER = {"act", "database", "say", "source", "start_spark", "installation", "reading"}


def sections() -> dict[str, list[tuple[str, Any]]]:
    """Return all that programs may use: by section, each with the name that they write."""
    module = [(f"weir.{name}", getattr(weir, name)) for name in weir.__all__]
    module = [one for one in module if one[0] not in ("weir.__version__", "weir.StreamStore")]
    store = list(_with_members("weir.StreamStore", weir.StreamStore))
    actions = [one for one in store if one[0].rpartition(".")[2] in FORMS]
    spark = [(f"weir.spark.{name}", getattr(weir.spark, name)) for name in weir.spark.__all__]
    values = [(one.__name__, one) for one in (Options, Reader, Committed, Step, Adjuncts)]
    returned = sorted(reports().items())
    known = [one for one in vars(errors).values() if inspect.isclass(one)]
    return {
        "The module": [one for pair in module for one in _with_members(*pair)],
        "An opened installation": [one for one in store if one not in actions],
        "Actions": actions,
        "Spark": [one for pair in spark for one in _with_members(*pair)],
        "What calls take and return": [one for pair in values for one in _with_members(*pair)],
        "Reports": returned,
        "Errors": [
            (f"weir.errors.{one.__name__}", one)
            for one in known
            if issubclass(one, errors.WeirError)
        ],
    }


def _with_members(name: str, what: Any) -> Iterator[tuple[str, Any]]:
    """Yield a name; for a class of Weir its methods and properties, too, in alphabetical order."""
    yield name, what
    if not inspect.isclass(what) or issubclass(what, Warning):
        return
    for member in sorted(dir(what)):
        found = inspect.getattr_static(what, member)
        whose = getattr(_called(found), "__module__", "") or ""
        if member.startswith("_") or member in _INNER or not whose.startswith("weir."):
            continue
        if isinstance(found, (property, classmethod, staticmethod)) or inspect.isfunction(found):
            yield f"{name}.{member}", found


def _called(member: Any) -> Any:
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def signature(name: str, what: Any) -> str:
    """Return how a name is used: with the arguments, their types and defaults, and what is
    returned. A class without a constructor for programs is its name."""
    if isinstance(what, property):
        returned = inspect.signature(_called(what)).return_annotation
        return f"{name} -> {_type(returned)}"
    if inspect.isclass(what) and what not in _MADE:
        return name
    if is_typeddict(what):
        return (
            f"{name}({', '.join(f'{key}: {_type(t)}' for key, t in get_type_hints(what).items())})"
        )
    known = inspect.signature(_called(what))
    shown, kind = [], None
    for one in known.parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and kind not in (one.KEYWORD_ONLY, one.VAR_POSITIONAL):
            shown.append("*")
        kind = one.kind
        star = "*" * (kind is one.VAR_POSITIONAL) + "**" * (kind is one.VAR_KEYWORD)
        default = "" if one.default is one.empty else f" = {_default(one.default)}"
        shown.append(f"{star}{one.name}: {_type(one.annotation)}{default}")
    returned = "" if inspect.isclass(what) else f" -> {_type(known.return_annotation)}"
    return f"{name}({', '.join(shown)}){returned}"


# Classes whose constructor programs call, or whose fields they read.
_MADE = (weir.Settings, weir.spark.Reader, weir.spark.AdjunctStoreManager, Options, Committed, Step)


def _type(annotation: Any) -> str:
    """Return a type without the modules that its names are in."""
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    shown = re.sub(r"^\*<class '([\w.]+)'>", r"Unpack[\1]", shown).replace("~", "")
    shown = re.sub(r"ForwardRef\('(\w+)'(, [^)]*)?\)", r"\1", shown).replace("NoneType", "None")
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", shown)


def _default(value: Any) -> str:
    return repr(value) if not callable(value) else getattr(value, "__qualname__", repr(value))


def document() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for heading, names in sections().items():
        parts.append(f"## {heading}\n")
        parts += [f"{ABOUT[heading]}\n"] * bool(ABOUT[heading])
        for name, what in names:
            written = signature(name, what)
            *_, whose, last = ["", *name.split(".")]
            parts.append(f"#### `{whose}.{last}`\n" if whose[:1].isupper() else f"### `{name}`\n")
            if written != name:
                parts.append(f"```python\n{_broken(written)}\n```\n")
            parts.append(f"{_plain(inspect.getdoc(_called(what)) or '')}\n")
    return "\n".join(parts)


def _broken(written: str) -> str:
    """Return a signature with a line for each argument if it is long."""
    name, _, rest = written.partition("(")
    if len(written) <= 100 or not rest:
        return written
    arguments, closing, returned = rest.rpartition(")")
    lines = re.split(r", (?=\*|\w+: )", arguments)
    return "\n".join([f"{name}(", *(f"    {one}," for one in lines), f"{closing}{returned}"])


def _plain(text: str) -> str:
    """Return a docstring as Markdown, in which lines that are indented are code."""
    lines = []
    for line in text.splitlines():
        code = line.startswith("    ")
        outside = re.split(r"(`[^`]*`)", line)
        lines.append(line if code else "".join(
            one if one.startswith("`") else re.sub(r"([|<*])", r"\\\1", one) for one in outside
        ))  # fmt: skip
    return "\n".join(lines)


def stub() -> str:
    """Return methods.pyi."""
    parts = [
        '"""Made by `make docs` from the forms of the jobs; methods.py makes the methods."""',
        "from typing import Any, Literal, NotRequired, TypedDict\n",
    ]
    made = [_class_of(kind) for kind in reports().values() if kind.__module__.startswith(JOBS)]
    named = "\n".join([*made, *(f"-> {report_of(action).__name__}" for action in FORMS)])
    imported = {("weir.programs.actions", "Acting")} | {
        (kind.__module__, name) for name, kind in reports().items()
        if not kind.__module__.startswith(JOBS) and re.search(rf"\b{name}\b", named)
    }  # fmt: skip
    parts += [
        f"from {module} import {', '.join(name for _, name in names)}"
        for module, names in groupby(sorted(imported), lambda one: one[0])
    ]
    parts += made
    parts.append("class Actions(Acting):")
    for action, form in FORMS.items():
        arguments = ", ".join(_stubbed(action))
        parts.append(f"    def {action}({arguments}) -> {report_of(action).__name__}:")
        parts.append(_documented(form, 8))
    return _formatted(STUB, parts)


def report_of(action: str) -> type[Any]:
    """Return the type of an action's report. Jobs import what reads only when they run, so that
    of a consumer is named as a text."""
    found: type[Any] = get_type_hints(ACTIONS[action].run, None, {"Consumed": Consumed})["return"]
    return found


def reports() -> dict[str, type[Any]]:
    """Return the types of all reports, by their names, each after those that it is made of."""
    found: dict[str, type[Any]] = {}

    def add(kind: Any) -> None:
        for part in get_args(kind) or (get_type_hints(kind).values() if is_typeddict(kind) else ()):
            add(part)
        if is_typeddict(kind):
            found.setdefault(kind.__name__, kind)

    for action in FORMS:
        add(report_of(action))
    return found


def _class_of(report: type[Any]) -> str:
    """Return a report of a job as the stub has it, because nobody imports a job."""
    keys = get_type_hints(report, include_extras=True).items()
    lines = [f"    {key}: {_type(kind)}" for key, kind in keys]
    return "\n".join([f"class {report.__name__}(TypedDict):", _documented(report, 4), *lines])


def operators() -> str:
    """Return actions.pyi."""
    parts = [
        '"""Made by `make docs` from the forms of the jobs; actions.py makes the operators."""',
        "from typing import Any, Literal\n",
        "from airflow.sdk import XComArg\n",
        "from weir.airflow.operators import WeirJobOperator\n",
        "class ActionOperator(WeirJobOperator): ...\n",
    ]
    for action, form in FORMS.items():
        arguments = ", ".join(_operator_arguments(action))
        parts.append(f"class {airflow.operator_name(action)}(ActionOperator):")
        parts.append(_documented(form, 4))
        parts.append(f"    def __init__({arguments}, **kwargs: Any) -> None: ...\n")
    return _formatted(OPERATORS, parts)


def _operator_arguments(action: str) -> list[str]:
    own = [] if "engine" in FORMS[action].__dataclass_fields__ else ["engine: str = 'spark'"]
    taken = [one for one in _stubbed(action) if one not in ("self", "*")]
    for name, keyword in RENAMED.items():
        taken = [re.sub(f"^{name}:", f"{keyword}:", one) for one in taken]
    known = [re.sub(r"( = |$)", r" | XComArg\1", one, count=1) for one in taken]
    connections = ["conn_id: str = ''", "spark_conn_id: str = 'spark_default'"]
    asking = ["approval: bool = True"] if ACTIONS[action].measure else []
    return ["self", "*", "task_id: str", *known, *own, *connections, *asking]


def dag_functions() -> str:
    """Return dag_functions.pyi."""
    known = [one for one in _operator_arguments("process") if "function:" not in one]
    known = [one for one in known if not one.startswith(("self", "task_id:", "parameters:"))]
    known = [one.replace("= 'auto'", "= 'pyarrow'") for one in known]
    parts = [
        '"""Made by `make docs` from spark_jobs.process."""',
        "from collections.abc import Callable",
        "from typing import Any, Literal\n",
        "from airflow.sdk import XComArg",
        "from airflow.sdk.bases.decorator import TaskDecorator\n",
        "def weir_process(python_callable: Callable[..., Any] | None = None, "
        f"{', '.join(known)}, **kwargs: Any) -> TaskDecorator:",
        '    """Call a function of the DAG file with what a reader group has not read yet, exactly '
        'once."""',
    ]
    return _formatted(DAG_FUNCTIONS, parts)


def _stubbed(action: str) -> list[str]:
    """Return the arguments of an action's method as a stub has them."""
    known = inspect.signature(getattr(methods.Actions, action))
    arguments, named = ["self"], False
    for one in list(known.parameters.values())[1:]:
        if one.kind is one.KEYWORD_ONLY and not named:
            arguments, named = [*arguments, "*"], True
        simple = isinstance(one.default, (str, int, float, type(None)))
        default = repr(one.default) if simple else "..."
        given = "" if one.default is one.empty else f" = {default}"
        arguments.append(f"{one.name}: {_type(one.annotation)}{given}")
    return arguments


def _documented(form: type[Any], indented: int) -> str:
    lines = inspect.cleandoc(form.__doc__ or "").splitlines()
    blanks = " " * indented
    return f"\n{blanks}".join([f'{blanks}"""{lines[0]}', *lines[1:]]) + '"""'


def _formatted(path: Path, parts: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"],
        input="\n".join(parts) + "\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def main() -> None:
    STUB.write_text(stub())
    OPERATORS.write_text(operators())
    DAG_FUNCTIONS.write_text(dag_functions())
    TARGET.write_text(document())
    print(f"{TARGET} and the stubs are up to date")


if __name__ == "__main__":
    main()
