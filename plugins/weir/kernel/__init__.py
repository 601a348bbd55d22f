"""Rows: what touches one is a function here, on record batches of Arrow, without a database."""
