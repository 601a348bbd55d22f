"""Declarations: the streams, adjunct stores, groups and consumers of a file are compared with the
database.

What differs is changed. A file never deletes anything, and what it does not name is left alone.
"""
