"""Load `module:function` that users name, only from the packages that the installation
configured.
"""

import functools
import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from weir.errors import InvalidInput, exited
from weir.model.names import FUNCTION_PATTERN


def check_function_name(name: str, packages: Sequence[str]) -> str:
    """Return the name of a function of one of these packages. Imports nothing, because that runs
    code. Raises InvalidInput for another one."""
    if re.fullmatch(FUNCTION_PATTERN, name) is None:
        raise InvalidInput(
            "function_name_invalid",
            f"{name!r} is not the name of a function; write module:function.",
        )
    if name.partition(":")[0].split(".")[0] not in packages:
        allowed = ", ".join(packages) or "none is configured"
        raise InvalidInput(
            "function_not_allowed",
            f"function {name!r} is not in an allowed package ({allowed}); add its package to "
            "function_packages in weir.toml.",
        )
    return name


def load_function(name: str, packages: Sequence[str]) -> Callable[..., Any]:
    """Import a function and return it.

    The name is checked before anything is imported, because importing runs code. Raises
    InvalidInput if the function is not allowed, does not exist, or cannot be called.
    """
    module, _, function = check_function_name(name, packages).partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except SystemExit as error:
        raise exited(f"the module of function {name!r}", error) from error
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            "function_not_loadable",
            f"function {name!r} can't be loaded ({error}); check its name, and function_path in "
            "weir.toml.",
        ) from None
    if not callable(found):
        raise InvalidInput("function_not_loadable", f"{name!r} is not a function; name one.")
    # A function that a module of the package imports is not a function of the package.
    own = found
    while isinstance(own, functools.partial):
        own = own.func
    origin = getattr(own, "__module__", None) or type(own).__module__
    if str(origin).split(".")[0] not in packages:
        raise InvalidInput(
            "function_not_allowed",
            f"{name!r} is only imported there from {origin!r}, which is not an allowed package; "
            "define the function in the package itself.",
        )
    return found  # type: ignore[no-any-return]  # checked just now
