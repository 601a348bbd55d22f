"""What batches write: Parquet folders and tables, recorded, and published by their commits."""
