"""Reader groups: each segment has at most one owner, and positions move with committed batches.

Each change of a group is one transaction, which locks the group's row and checks the change before
it writes.

From these proposals (docs/semantics.md says where Weir differs):
- the design of reader groups, positions, checkpoints and the assignment:
  https://cncf.pravega.io/docs/latest/reader-group-design/
- PDP-28, reads in write order:
  https://github.com/pravega/pravega/wiki/PDP-28-(Cross-Routing-Key-Ordering)
- PDP-33, what a group is complete to:
  https://github.com/pravega/pravega/wiki/PDP-33:-Watermarking
"""
