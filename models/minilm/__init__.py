"""all-MiniLM-L6-v2: a sentence encoder."""
