"""Reads: scan exactly the files that the metadata names, in an order, without a shuffle."""
