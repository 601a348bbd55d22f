"""Append and read pyarrow tables without a JVM."""
