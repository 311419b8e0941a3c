"""The Book's examples: short programs, each from data to result.

python -m burnish.models.examples.guide
"""
