"""Streams, epochs, segments, append transactions, cuts and truncation (Pravega's controller).

Each public operation is one Postgres transaction that first locks the rows of the streams it
changes. What only reads takes a connection.

From these proposals (docs/semantics.md says where Weir differs):
- PDP-32, records and queries whose cost does not grow with history:
  https://github.com/pravega/pravega/wiki/PDP-32-(Improve-Scalability-of-Controller-Metadata)
- PDP-24, commits after a scale:
  https://github.com/pravega/pravega/wiki/PDP-24:-Rolling-Transaction
- PDP-28, the time index:
  https://github.com/pravega/pravega/wiki/PDP-28-(Cross-Routing-Key-Ordering)
"""
