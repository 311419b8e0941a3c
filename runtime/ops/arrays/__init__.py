"""Operators on whole arrays: shapes, indexing, reductions, scans, sorting."""
