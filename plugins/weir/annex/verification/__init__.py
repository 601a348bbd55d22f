"""Compare the files of a warehouse with what was recorded of them."""
