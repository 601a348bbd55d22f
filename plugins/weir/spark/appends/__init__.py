"""Appends: stage the rows of an attempt, check them, and commit them."""
