"""Weir on one machine: its own Postgres, its own Airflow, and Spark in local mode.

Start it with `python -m weir.local up`, or in Python with `weir.local.installation.Installation`.
All data is in one state folder. Where Postgres and Airflow already run, this package is not needed.
"""
