"""Files to Graph; the format is told by content, not by suffix."""
