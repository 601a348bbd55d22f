"""Deletion: what may be deleted, when and why (PDP-47), and what is deleted by hand."""
