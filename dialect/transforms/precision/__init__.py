"""Narrower element types for weights and activations."""
