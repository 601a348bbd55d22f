"""Airflow, as its tests have it."""

from tests.airflow import conftest as conftest
