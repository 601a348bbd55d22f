"""What programs use: `weir.open`, the object it returns, and the functions of the module `weir`."""
