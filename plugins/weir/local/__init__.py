"""Weir on one machine: its own Postgres, its own Airflow, Spark in local mode.

`python -m weir.local up`, or in Python: `weir.local.installation.Installation(state)`. Everything
lies in one state folder; nothing here is needed where Postgres and Airflow are already run.
"""
