"""Keep the past: runs of jobs, and lineage: which run made which events."""
