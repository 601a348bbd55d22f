"""Input files with Spark: their columns, and their rows with a rank each."""
