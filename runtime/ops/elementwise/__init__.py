"""Operators that compute element by element; shapes broadcast, dtypes promote."""
