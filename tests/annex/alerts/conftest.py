"""Airflow, as its tests have it."""

from tests.airflow.conftest import execute as execute
