"""Rewrites f32 products, convolutions and attention to read a narrower float, and what follows them to compute on it.

Before::

    %0 = "relax.matmul"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = "relax.add"(%0, %b)
    %2 = "relax.softmax"(%1)

With ``dtype=bf16 out-dtype=bf16``, after::

    %b1 = "relax.astype"(%b) {dtype = bf16}            // on weights, so that lifting moves them: prepared weights are narrow
    %w1 = "relax.astype"(%w) {dtype = bf16}
    %x1 = "relax.astype"(%x) {dtype = bf16}
    %0 = "relax.matmul"(%x1, %w1) {out_dtype = bf16} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %1 = "relax.add"(%0, %b1) : (tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>
    %3 = "relax.astype"(%1) {dtype = f32}
    %2 = "relax.softmax"(%3)

Each op is of one of three kinds (:mod:`.kinds`). Compute-heavy ops always read the narrow dtype; they sum in f32. Ops
that follow, such as additions, activations and movement, compute on it when everything they read at run time is narrow.
Softmax, norms, exponentials, sums and all others never do. Signatures of functions stay, and so does what comes from weights
alone, up to where a narrow op reads it. A cast of a cast is left out where that changes no value.

Rounding changes: what a compute-heavy op reads and what a following op returns is rounded to the narrow dtype. In f16 values
beyond 65504 become infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from ...analysis.weight_flow import FlowRules
from ...bindings import func, ir
from ...context import operations
from ...errors import RelaxError
from ...functions import argument_names, body_of, functions, num_input
from ...passes.base import Pass
from .rewrite import PrecisionRewrite

__all__ = ["ToMixedPrecision"]

_NARROW = ("bf16", "f16")


@dataclass(frozen=True)
class ToMixedPrecision(Pass):
    """Rewrites f32 products, convolutions and attention to read a narrower float.

    Attributes:
        dtype: the narrow dtype, ``bf16`` or ``f16``.
        out_dtype: what products and convolutions return: the narrow dtype, or ``f32``, their sums unrounded for ops that read
            f32, and rounded by a cast of its own for those that follow.
        keep: what stays in f32: ops by name (``relax.matmul`` or ``matmul``), and weights by name or pattern (``lm_head.*``)
            with all ops that read what is computed from them.
    """

    name: ClassVar[str] = "relax-to-mixed-precision"
    rounding: ClassVar[float] = 2e-2
    dtype: str = "bf16"
    out_dtype: str = "f32"
    keep: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        if self.dtype not in _NARROW:
            raise RelaxError(f"expected dtype {' or '.join(_NARROW)}, got '{self.dtype}'")
        if self.out_dtype not in (self.dtype, "f32"):
            raise RelaxError(f"expected out-dtype {self.dtype} or f32, got '{self.out_dtype}'")
        narrow = ir.BF16Type.get() if self.dtype == "bf16" else ir.F16Type.get()
        names = {cls.OPERATION_NAME for cls in operations()}
        ops = {_full_name(k) for k in self.keep if _full_name(k) in names}
        patterns = [k for k in self.keep if _full_name(k) not in names]
        _check_patterns(patterns, [name for f in functions(op) for name, _ in _weights(f)])
        rules = FlowRules.of(op)
        for function in functions(op):
            kept = {w for name, w in _weights(function) if any(fnmatchcase(name, p) for p in patterns)}
            PrecisionRewrite(narrow, self.out_dtype == "f32", ops, kept).apply(function, rules.flow(function))


def _full_name(name: str) -> str:
    return name if name.startswith("relax.") else f"relax.{name}"


def _weights(function: func.FuncOp) -> list[tuple[str, ir.Value]]:
    """The named weights of a function."""
    block, inputs = body_of(function), num_input(function)
    if block is None or inputs is None:
        return []
    named = list(zip(argument_names(function), block.arguments, strict=True))[inputs:]
    return [(name, argument) for name, argument in named if name is not None]


def _check_patterns(patterns: list[str], names: list[str]) -> None:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise RelaxError(f"expected an op or a weight to keep, got '{pattern}'")
