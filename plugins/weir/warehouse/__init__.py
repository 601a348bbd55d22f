"""Files: paths and file systems, the ownership marker of a warehouse, and deleting files."""
