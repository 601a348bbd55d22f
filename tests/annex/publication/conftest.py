"""The object store of the folder."""

from tests.arrow.conftest import lake as lake
