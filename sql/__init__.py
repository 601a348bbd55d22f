"""The schema of Weir's metadata, as SQL files: migrations (tables), functions, views, roles."""
