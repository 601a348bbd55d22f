"""A database for all tests that only look at streams of their own."""

from tests.world.streams import shared_by

shared_database = shared_by("scaling")
