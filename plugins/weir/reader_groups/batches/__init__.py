"""Batches: planned, opened, split when they fail, and committed."""
