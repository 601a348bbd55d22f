"""Pure values and rules, without I/O: segments, stream cuts, schemas, policies, decisions."""
