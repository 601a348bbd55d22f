"""`module:function` that users name: only from the packages that the installation configured."""

import functools
import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from weir.errors import InvalidInput
from weir.operations import FUNCTION_PATTERN


def load_function(name: str, packages: Sequence[str]) -> Callable[..., Any]:
    """Import a function. Raises InvalidInput when it is not allowed, not there or not callable.

    The check is on the name, before anything is imported: importing runs code.
    """
    if re.fullmatch(FUNCTION_PATTERN, name) is None:
        raise InvalidInput(
            "function_name_invalid", f"{name!r} is not a function's name; write module:function."
        )
    module, _, function = name.partition(":")
    if module.split(".")[0] not in packages:
        allowed = ", ".join(packages) or "none is configured"
        raise InvalidInput(
            "function_not_allowed",
            f"function {name!r} is not in a package that functions may come from ({allowed}); add "
            "its package to function_packages in weir.toml.",
        )
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            "function_not_loadable",
            f"function {name!r} can't be loaded: {error}; check its name, and function_path in "
            "weir.toml.",
        ) from None
    if not callable(found):
        raise InvalidInput("function_not_loadable", f"{name!r} is not a function.")
    # What a module of a package has imported is no function of that package.
    own = found
    while isinstance(own, functools.partial):
        own = own.func
    origin = getattr(own, "__module__", None) or type(own).__module__
    if str(origin).split(".")[0] not in packages:
        raise InvalidInput(
            "function_not_allowed",
            f"{name!r} is imported there from {origin!r}, which is not in a package that functions "
            "may come from; define a function for it in the package itself.",
        )
    return found  # type: ignore[no-any-return]  # checked just now
