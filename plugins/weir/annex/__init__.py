"""What hangs on the core: each annex can be taken off, and the core does not name it."""
