"""What programs use: `weir.open`, and the object that it returns."""
