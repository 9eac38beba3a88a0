"""Kernels for NVIDIA GPUs: templates, and the general path for what no template fits."""
