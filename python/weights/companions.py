"""Tensors that nothing reads beside a quantized weight, and that would change it: told by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["parameters_beside"]

#: What is part of how a weight is computed: scales, zero points, orders of inputs, rotations, parts of it kept wide.
_PARAMETERS = re.compile(r"scal[ae]|scb|zero|g_idx|perm|rotat|hadamard|outlier|smooth", re.IGNORECASE)

#: What activations and caches are quantized to, which is not done here, and changes no weight.
_OF_ACTIVATIONS = re.compile(
    r"(^|_)(input|output|act|activation|k|q|v|kv|prob|softmax)_(quant_|global_|per_tensor_)?(scale|zero)|q?scale_(act|input|output)",
    re.IGNORECASE,
)

_OF_WEIGHT = re.compile(r"(.+)\.weight(?:[._][^.]+)?")


def parameters_beside(names: Iterable[str], weights: Iterable[str]) -> list[str]:
    """The names out of these that are parameters of the same layer as one of the weights.

    Args:
        names: of tensors that nothing reads.
        weights: of tensors that are read, and are quantized or part of what is.
    """
    found = [n for n in names if _PARAMETERS.search(last := n.rpartition(".")[2]) and not _OF_ACTIVATIONS.search(last)]
    layers = {_layer(name) for name in weights} if found else set[str]()
    return [name for name in found if _layer(name) in layers]


def _layer(name: str) -> str:
    """The module that a tensor belongs to: ``a`` of ``a.weight``, ``a.weight_scale``, ``a.weight.absmax`` and ``a.qweight``."""
    found = _OF_WEIGHT.fullmatch(name)
    return name.rpartition(".")[0] if found is None else found[1]
