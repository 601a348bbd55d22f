"""Statements with names and typed rows, made from `sql/queries`."""
