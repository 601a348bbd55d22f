"""Segments follow the load: rates, decisions by policy, and the scales that carry them out."""
