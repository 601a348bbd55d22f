"""Keep the past: runs of jobs, lineage (which run made which events, of what), and what a stream
looked like over time.
"""
