"""Operators over sequences: embeddings, attention, recurrence, alignments."""
