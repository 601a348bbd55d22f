"""Appending and reading pyarrow tables, without a JVM."""
