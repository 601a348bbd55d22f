"""Adjunct stores: keyed tables kept from streams, and joined by consumers of other streams (SEP-4).

Nothing here needs Spark: the definitions of stores, their versions, and who builds which.
"""
