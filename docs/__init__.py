"""What of the documentation is made by programs. `make docs`."""
