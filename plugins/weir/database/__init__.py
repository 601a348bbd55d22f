"""Postgres: connections, transactions that are tried again, requests, migrations."""
