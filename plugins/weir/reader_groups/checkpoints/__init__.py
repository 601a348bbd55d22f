"""Checkpoints: positions of a group under a name, and the events that they release."""
