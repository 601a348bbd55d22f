"""Pure values and rules, without I/O: segments, stream cuts, schemas, policies, decisions.

Rules that come from proposals (docs/semantics.md says where Weir differs):
- PDP-47, the decisions of retention:
  https://github.com/pravega/pravega/wiki/PDP-47-(Pravega-Streams-Consumption-Based-Retention)
- PDP-33, what a stream is complete to:
  https://github.com/pravega/pravega/wiki/PDP-33:-Watermarking
"""
