"""AttaCut: splits Thai text into words."""
