"""What became of a stream's segments: read from the metadata, drawn, and replayed with a policy."""
