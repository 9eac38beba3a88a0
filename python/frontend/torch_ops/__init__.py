"""The op map, torch dialect to relax, in families; :func:`load` fills :data:`relaxir.frontend.torch_op.HANDLERS`."""

import importlib

__all__ = ["FAMILIES", "load"]

FAMILIES = (
    "batch_norm", "bessel", "control_flow", "convolution", "creation", "data_counts", "data_sizes", "distances",
    "elementwise", "embedding_bag", "experts", "factorizations", "fourier", "indexing", "linear_algebra", "manipulate", "nn",
    "normal", "padding", "pooling", "quantized", "reduction", "scatter", "sorting", "special", "vision",
)  # fmt: skip


def load() -> None:
    """Imports every family; a second call does nothing."""
    for family in FAMILIES:
        importlib.import_module(f".{family}", __name__)
