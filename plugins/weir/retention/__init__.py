"""What retention may truncate, when and why (PDP-47); what people truncate, release or delete.

From this proposal (docs/semantics.md says where Weir differs):
- PDP-47, consumption-based retention:
  https://github.com/pravega/pravega/wiki/PDP-47-(Pravega-Streams-Consumption-Based-Retention)
"""
