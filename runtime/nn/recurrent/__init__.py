"""Recurrent layers, over whole sequences and as cells for one step."""
