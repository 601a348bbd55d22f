"""Keep the past: runs of jobs, lineage (which run made which events), streams over time."""
