"""What a database that was restored from a backup needs before it is used again."""
