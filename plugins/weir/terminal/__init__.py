"""The command `weir`: look at streams, and run jobs, from a terminal."""
