"""Replay recorded loads by other policies."""
