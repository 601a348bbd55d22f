"""Show the past: pictures of a stream's segments, policies replayed over them, and lineage.

Lineage says which run made which events, of what.
"""
