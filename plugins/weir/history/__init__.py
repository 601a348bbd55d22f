"""Keep and show the past: runs of jobs, lineage, pictures of a stream, and policies replayed.

Lineage says which run made which events, of what.
"""
