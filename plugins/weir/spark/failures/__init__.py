"""What goes wrong in Spark: unreadable files, full disks, and whose error an error is."""
