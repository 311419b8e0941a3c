"""Operators that move elements and compute none: views, joins, selections, gathers."""
