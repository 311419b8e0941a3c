"""Display of a run: lines of text, a live dashboard, the table at its end."""
