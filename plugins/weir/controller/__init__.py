"""Streams, epochs, segments, append transactions, cuts and truncation (Pravega's controller).

Each public operation is one Postgres transaction that first locks the rows of the streams it
changes. What only reads takes a connection.
"""
