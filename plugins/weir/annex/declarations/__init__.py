"""Declarations: streams, stores, groups and consumers are made what a file says.

The file is compared with the database, and what differs is changed. A file never deletes anything,
and what it does not name is left alone.
"""
