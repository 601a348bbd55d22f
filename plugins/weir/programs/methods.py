"""A method of an opened installation for each action. Type checkers see the same ones in
methods.pyi, which `make docs` writes."""

from weir.operations.jobs import FORMS
from weir.programs.actions import Acting, method_of


class Actions(Acting):
    """An installation with a method for each action."""


for _action, _form in FORMS.items():
    setattr(Actions, _action, method_of(_action, _form))
