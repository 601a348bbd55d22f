"""Adjunct stores: build their versions, read them, and join them with events."""
