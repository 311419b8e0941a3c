"""Models that are not networks: support vectors, decision trees, lookups."""
