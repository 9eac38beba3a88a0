"""Relax to linalg on plain tensors: one module per op family, and what they share."""
