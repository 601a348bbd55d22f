"""What users write: SQL expressions, types, and functions that are named `module:function`."""
