"""Consumers: readers, their batches, and what a function makes of them."""
