"""Yahoo's Open-NSFW: tells images that are not safe for work."""
