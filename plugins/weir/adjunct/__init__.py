"""Adjunct stores: keyed tables kept from streams, and joined by consumers of other streams (SEP-4).

Nothing here needs Spark: the definitions of stores, their versions, and who builds which.

From this proposal (docs/adjunct.md says where Weir differs):
- SEP-4, adjunct data stores:
  https://cwiki.apache.org/confluence/display/SAMZA/SEP-4%3A+Adjunct+Data+Store+for+Unbounded+DataSets
"""
