"""Reads the batches of a reader group and publishes what is made of them, with Spark or pyarrow."""
