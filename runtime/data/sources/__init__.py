"""Where datasets come from: files, folders, tables, and published sets."""
