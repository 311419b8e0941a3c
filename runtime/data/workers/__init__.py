"""Threads and processes that load batches."""
