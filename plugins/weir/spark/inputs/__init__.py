"""Input files: which ones, their columns, and their rows with a rank each."""
