"""Prove or refute from the ledger that each event was delivered once, is kept, or is named as lost.

The ledger are the rows that Weir keeps in Postgres. An audit shares nothing with the code that
wrote them but the connection: it calls no function of the schemas, and computes what a cut has
passed by itself. A mistake in a rule that both had would be proven right.
"""
