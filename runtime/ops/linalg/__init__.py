"""Matrix products and factorizations, over the last two axes."""
