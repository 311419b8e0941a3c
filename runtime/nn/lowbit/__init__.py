"""Layers whose weights or inputs have few bits: quantizers, products, files."""
