"""What a run shows: lines of text, a live dashboard, the table at its end."""
