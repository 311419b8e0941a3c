"""The pages of generated source, as Jinja templates."""
