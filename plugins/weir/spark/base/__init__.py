"""What all work with Spark stands on: sessions, exact names and values, order, routing."""
