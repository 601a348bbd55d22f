"""Publish streams as tables that other engines read, of the streams' own files (decision 88)."""
