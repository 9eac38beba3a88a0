"""Nothing that lowering tells kernels can be folded away: with MLIR's folds between all its steps results are the same.

What a kernel has to know stands in marks, or in computations that are used: neither is for a fold to drop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from fuzzing.random_shapes import check_text
from fuzzing.random_shapes import text as random_shapes
from relaxir.dialect.dtypes import dtype_name, numpy_dtype
from support.integer_products import CASES, INTEGER_PIPELINE, module_of
from support.stages import executable_of, lowered

Array = np.ndarray[Any, Any]

#: What simplifies any IR, whatever it computes.
FOLDS = ("sccp", "int-range-optimizations", "arith-unsigned-when-equivalent", "canonicalize", "cse")
#: Loops of one iteration go, and with them the marks of the operations that they were in: plain loops compute these.
LINALG_FOLDS = ("func.func(linalg-inline-scalar-operands,linalg-fold-unit-extent-dims)", *FOLDS)
#: By the largest element: plain loops round each product, and take zero points out of sums that are rounded.
ROUNDING = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
#: Bytes and words, with groups or without, zero points that are known, or not, or none, one row, any number, or several.
SOME = [CASES[i] for i in (0, 1, 2, 6, 7)]
SEEDS = range(4)


def folded(elements: Sequence[str], folds: Sequence[str] = FOLDS) -> list[str]:
    """All steps, with folds after each from linalg to kernels; those of linalg as long as there are tensors.

    MLIR does not verify what it folds of empty tensors: folds begin when these are gone.
    """
    names = [element.partition("{")[0] for element in elements]
    first, buffers, kernels = (names.index(f"relax-{n}") for n in ("repeat-producers", "add-destinations", "lower-kernels"))
    more = [() if not first <= i < kernels else folds if i < buffers else FOLDS for i in range(len(names))]
    return [text for element, after in zip(elements, more, strict=True) for text in (element, *after)]


def quantized() -> tuple[rx.Module, dict[str, Array], dict[str, Array]]:
    """Products of quantized weights, and the arguments of each: 8 and 4 bits, groups, zero points, f32, bf16 and f16."""
    rng, calls = np.random.default_rng(1), dict[str, Array]()
    module, held = module_of(SOME)
    for name, case in zip(held, SOME, strict=True):
        rows = 9 if isinstance(case.m, str) else case.m
        calls[name] = rng.standard_normal((rows, case.k)).astype(numpy_dtype(case.activations))
    return module, {k: v for own in held.values() for k, v in own.items()}, calls


def narrow() -> tuple[rx.Module, dict[str, Array], dict[str, Array]]:
    """A product of bf16 with bf16."""
    builder, rng = rx.Builder(), np.random.default_rng(1)
    with builder.function("main"):
        x, w = builder.input("x", ("m", 64), "bf16"), builder.weight("w", (64, 70), "bf16")
        builder.output(builder.matmul(x, w, out_dtype="f32"))
    w, x = (rng.standard_normal(shape).astype(numpy_dtype("bf16")) for shape in ((64, 70), (9, 64)))
    return builder.build(), {"w": w}, {"main": x}


@pytest.mark.parametrize(
    ("make", "passes"), [(quantized, INTEGER_PIPELINE), (quantized, None), (narrow, None)], ids=["integers", "floats", "bf16"]
)
def test_products_of_narrow_weights(make, passes: str | None) -> None:
    module, weights, calls = make()
    changes = [list, folded, lambda elements: folded(elements, LINALG_FOLDS)]
    plain, simple, without_units = (executable_of(lowered(module, None, passes, change=change)) for change in changes)
    for executable in (plain, simple, without_units):
        executable.bind(executable.prepare(weights))
    for entry, x in calls.items():
        wanted, same, near = (np.asarray(e(x, entry=entry), np.float64) for e in (plain, simple, without_units))
        np.testing.assert_array_equal(same, wanted)
        limit = ROUNDING[dtype_name(x.dtype)] * np.abs(wanted).max()
        np.testing.assert_allclose(near, wanted, rtol=0, atol=limit)


@pytest.mark.parametrize("seed", SEEDS)
def test_modules_of_every_shape(seed: int) -> None:
    check_text(random_shapes(seed), lambda module: executable_of(lowered(module, change=folded)))
