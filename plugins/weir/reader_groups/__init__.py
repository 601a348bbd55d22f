"""Reader groups: each segment has at most one owner, and positions move with committed batches.

Each change of a group is one transaction, which locks the group's row and checks the change before
it writes.
"""
