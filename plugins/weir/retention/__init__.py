"""Retention: what may be deleted, when and why (PDP-47)."""
