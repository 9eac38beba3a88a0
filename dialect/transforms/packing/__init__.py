"""Weights in the layouts that kernels read."""
