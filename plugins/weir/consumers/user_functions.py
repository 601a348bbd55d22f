"""Load `module:function` that users name: only from the packages that the installation configured,
and only from one place. The mark of a function that returns declarations.

In a terminal the person's folder comes first. A module that is in two places is refused: both were
put there on purpose, and a group's declared consumers mean one of them.
"""

import ast
import contextlib
import difflib
import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TypeVar

from weir.consumers.own_frames import place_of
from weir.errors import InvalidInput, exited
from weir.model.names import FUNCTION_PATTERN
from weir.warehouse.paths import check_regular

F = TypeVar("F", bound=Callable[..., object])
_DECLARES = object()  # a mark that nothing else has


def declares(function: F) -> F:
    """Mark a function without arguments that returns declarations, so that `weir_apply` may call
    it. Whoever may trigger that chooses the name, so no other function is called."""
    function.weir_declares = _DECLARES  # type: ignore[attr-defined]  # for `is_declaring`
    return function


def is_declaring(function: Callable[..., object]) -> bool:
    """Return whether a function is marked with `declares`."""
    return getattr(function, "weir_declares", None) is _DECLARES


def check_function_name(name: str, packages: Sequence[str]) -> str:
    """Return the name of a function of one of these packages. Imports nothing, because that runs
    code. Raises InvalidInput for another one."""
    if re.fullmatch(FUNCTION_PATTERN, name) is None:
        raise InvalidInput(
            "function_invalid",
            f"{name!r} is not the name of a function; write module:function.",
        )
    if not _is_within(name.partition(":")[0], packages):
        allowed = ", ".join(packages) or "none is configured"
        raise InvalidInput(
            "function_not_allowed",
            f"function {name!r} is not in an allowed package ({allowed}); add its package to "
            "function_packages in weir.toml.",
        )
    return name


def load_function(
    name: str, packages: Sequence[str], folders: Sequence[str] = ()
) -> Callable[..., object]:
    """Import a function and return it.

    `packages`: packages and modules that it may come from. `folders`: where users keep their
    functions, which Python searches from now on; a module that is in two of them is refused, and
    one that is in one of them is the one that is loaded, or nothing is.

    The name is checked before anything is imported, because importing runs code. Raises
    InvalidInput if the function is not allowed, does not exist, is in two places, or cannot be
    called.
    """
    module, _, function = check_function_name(name, packages).partition(":")
    own_file = _only_file(module, folders)
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    try:
        loaded = importlib.import_module(module)
    except SystemExit as error:
        raise exited(f"the module of function {name!r}", error) from error
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            "function_not_loadable",
            f"function {name!r} can't be loaded ({error}"
            f"{f'; its package is {own_file[1]}' if own_file else ''}); check its name, and "
            "function_path in weir.toml.",
        ) from None
    except Exception as error:
        raise InvalidInput(
            "function_not_loadable",
            f"function {name!r} can't be loaded: its module fails at {place_of(error)} "
            f"({type(error).__name__}: {error}); correct it.",
        ) from error
    if own_file is not None:
        _check_loaded(name, *own_file)
    if not hasattr(loaded, function):
        where = getattr(loaded, "__file__", None) or f"module {loaded.__name__!r}"
        raise _not_there(name, where, vars(loaded))
    found = getattr(loaded, function)
    if not callable(found):
        raise InvalidInput("function_not_loadable", f"{name!r} is not a function; name one.")
    # A function that a module of the package imports is not a function of the package.
    own = found
    while isinstance(own, functools.partial):
        own = own.func
    origin = getattr(own, "__module__", None) or type(own).__module__
    if not _is_within(str(origin), packages):
        raise InvalidInput(
            "function_not_allowed",
            f"{name!r} is only imported there from {origin!r}, which is not an allowed package; "
            "define the function in the package itself.",
        )
    return found  # type: ignore[no-any-return]  # checked just now


def find_function(
    name: str, packages: Sequence[str], folders: Sequence[str] = (), *, elsewhere: bool = False
) -> None:
    """Check that a function is there, as `load_function` does, but import nothing, because that
    runs code: what only an import would tell is not told. `elsewhere`: a module that is not on this
    machine may be on the one that calls the function. Raises InvalidInput."""
    module, _, function = check_function_name(name, packages).partition(":")
    _only_file(module, folders)
    path, file = [*folders, *sys.path], ""
    for part in module.split("."):
        spec = PathFinder.find_spec(part, path)
        if spec is None and module.partition(".")[0] in sys.builtin_module_names:
            return
        if spec is None and elsewhere:
            return
        if spec is None:
            raise InvalidInput(
                "function_not_loadable",
                f"function {name!r} can't be loaded (no module named {module!r}); check its name, "
                "and function_path in weir.toml.",
            )
        path, file = list(spec.submodule_search_locations or ()), spec.origin or ""
    if not file.endswith(".py"):
        return
    names = None
    with contextlib.suppress(OSError, ValueError, SyntaxError):  # an import says it better
        names = _bound(ast.parse(Path(file).read_text()))
    if names is not None and function not in names:
        raise _not_there(name, file, names)


def _not_there(name: str, where: str, names: Iterable[str]) -> InvalidInput:
    function = name.partition(":")[2]
    close = difflib.get_close_matches(function, names, n=1)
    meant = f"did you mean {close[0]!r}" if close else "check its name"
    return InvalidInput(
        "function_not_loadable",
        f"function {name!r} can't be loaded: {where} has no {function!r}; {meant}.",
    )


def _bound(module: ast.Module) -> set[str] | None:
    """Return the names that a module binds at its top; None if that is not to be seen."""
    names: set[str] = set()
    ahead: list[ast.AST] = [module]
    while ahead:
        one = ahead.pop()
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            # What is within it is bound there, but for what it says is of the module.
            of_module = [inner for inner in ast.walk(one) if isinstance(inner, ast.Global)]
            names |= {one.name, *(name for inner in of_module for name in inner.names)}
            continue
        ahead += ast.iter_child_nodes(one)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            names.add(one.id)
        elif isinstance(one, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in one.names}
    # Names that come from somewhere else, or are made while the module runs.
    return None if names & {"*", "__getattr__"} else names


def _is_within(module: str, packages: Sequence[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in packages)


def _only_file(module: str, folders: Sequence[str]) -> tuple[str, str] | None:
    """Return by which name and from which file Python would load the first part of a module that
    is a file, if one of the folders has it. Raises InvalidInput if two of them have it."""
    importlib.invalidate_caches()
    found = [one for folder in folders if (one := _in_folder(module, folder))]
    different = list({os.path.realpath(file): file for _, file in found}.values())
    if len(different) > 1:
        raise InvalidInput(
            "function_invalid",
            f"module {module!r} is in two places, {different[0]} and {different[1]}; give one of "
            "them another name.",
        )
    return found[0] if found else None


def _in_folder(module: str, folder: str) -> tuple[str, str] | None:
    """Return the name and the file, if the folder has it. A package without a file of its own is
    only a folder: what is below it counts."""
    path, name = [folder], ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        for one in path:  # which Python takes for nothing at all
            for file in (f"{one}/{part}.py", f"{one}/{part}/__init__.py"):
                check_regular(file, "file of functions")
        # By its last part: Python looks for the parent of a whole name among what it has loaded.
        spec = PathFinder.find_spec(part, path)
        if spec is None:
            return None
        if spec.origin is not None:
            return name, spec.origin
        path = list(spec.submodule_search_locations or ())
    return None


def _check_loaded(name: str, module: str, file: str) -> None:
    """Raise InvalidInput if Python has loaded a module from another file than it should."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded is None or os.path.realpath(loaded) != os.path.realpath(file):
        raise InvalidInput(
            "function_invalid",
            f"function {name!r} would be that of {file}, but Python knows another module "
            f"{module!r} ({loaded or 'one of its own'}); give yours another name.",
        )
