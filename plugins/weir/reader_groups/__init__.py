"""Reader groups: each segment of a group's streams has one owner; positions move with batches.

Postgres is the state synchronizer: every update is one transaction on the locked group row,
validated inside it.
"""
