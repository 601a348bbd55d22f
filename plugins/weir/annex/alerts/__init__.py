"""Carry Weir's alerts out of its database, to any notifier of Airflow."""
