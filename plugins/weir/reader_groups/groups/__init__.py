"""Groups and their readers: created, updated, reset, forked and deleted; who has joined."""
