"""Files: paths and file systems, whose a warehouse is, and deleting what is garbage."""
