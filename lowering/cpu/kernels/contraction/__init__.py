"""Contractions: matrix products and convolutions in register tiles."""
