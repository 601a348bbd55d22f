"""One module per action: its form, its page (the module's docstring), and its run.

Whoever adds a module here adds an action, with all that is made of it: a DAG with its form, a
command, a method of the opened installation, and a job.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from weir.operations.action import DATA, READER_GROUPS, STREAMS, UPKEEP, Action

_SUBJECTS = (STREAMS, READER_GROUPS, DATA, UPKEEP)  # in the order in which people meet them
_NAMES = [found.name for found in iter_modules(__path__)]
_FOUND: dict[str, Action[Any]] = {
    name: import_module(f"{__name__}.{name}").ACTION for name in _NAMES
}

# All actions by their names, in the order of their subjects; and their forms.
ACTIONS = {
    name: _FOUND[name]
    for subject in _SUBJECTS
    for name in _NAMES
    if _FOUND[name].subject == subject
}
FORMS: dict[str, type[Any]] = {name: action.form for name, action in ACTIONS.items()}
