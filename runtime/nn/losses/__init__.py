"""Losses, as functions and as layers."""
