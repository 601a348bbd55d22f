"""An installation that a process has opened: its settings, its database, and who works with it."""
