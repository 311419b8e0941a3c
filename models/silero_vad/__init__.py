"""Silero VAD: finds speech in audio."""
