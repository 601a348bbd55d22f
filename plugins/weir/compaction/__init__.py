"""Puts neighbouring small files of a segment together, and no reader sees it (semantics 12.5)."""
