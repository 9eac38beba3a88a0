"""Random orders of passes: those of the registry with some options, and those of MLIR that work around our ops."""

from __future__ import annotations

import random

from relaxir.dialect.passes import manager

__all__ = ["ELEMENTS", "PASSES", "random_pipeline"]

#: All our relax-to-relax passes.
PASSES = [n for n, cls in manager.registered().items() if cls.__module__.startswith("relaxir.dialect.transforms")]

#: ``remove-dead-values`` is none of them: it drops parameters that nothing reads, those that define symbols, too.
UPSTREAM = ("canonicalize", "cse", "symbol-dce", "func.func(loop-invariant-code-motion)", "func.func(canonicalize,cse)")

#: Options that are tried, per pass; those of functions name functions of the generator.
OPTIONS: dict[str, tuple[str, ...]] = {
    "relax-adjust-matmul-order": ("functions=main",),
    "relax-bundle-model-params": ("tuple-name=all",),
    "relax-combine-parallel-matmul": ("min-count=3", "max-count=2", "functions=main", "always=true"),
    "relax-convert-layout": ("layout=NCHW",),
    "relax-expand-matmul-of-sum": ("always=true", "always=true functions=main"),
    "relax-expand-tuple-arguments": ("public=true",),
    "relax-inline": ("functions=helper0", "functions=helper1", "functions=helper0,helper2", "functions=main"),
    "relax-lazy-get-input": ("callback=functions", "addressing=name", "extra-get=rank:i64", "functions=main"),
    "relax-lazy-set-output": ("callback=functions", "extra-set=rank:i64", "functions=main"),
    "relax-lazy-transform-params": ("callback=functions", "extra-get=rank:i64 extra-set=rank"),
    "relax-lift-transform-params": (
        "shared=true", "shared=true functions=main,decode", "functions=main", "growth-slack=0 max-total-growth=1.2",
        "growth-slack=0 max-growth=1", "shared=true growth-slack=64",
    ),
    "relax-pack-weights": ("tile=16", "tile=1"),
    "relax-quantize-weights": ("group=2", "group=1"),
    "relax-reorder-take-after-matmul": ("always=true",),
    "relax-schedule-lazy-io": ("effort=0", "functions=main"),
    "relax-share-packed-weights": ("always=true",),
    "relax-to-mixed-precision": ("dtype=f16", "out-dtype=bf16", "keep=matmul"),
    "relax-update-vdevice": ("from=cuda:0 to=cpu:0", "from=cpu:1 to=cpu:0", "index=0 to=cpu:7", "index=1 to=cuda:3"),
}  # fmt: skip

#: Passes that refuse to run without options.
_NEED_OPTIONS = ("relax-inline", "relax-update-vdevice")

#: What pipelines are made of: ours without options, with each of theirs, and MLIR's.
ELEMENTS = [
    *(p for p in PASSES if p not in _NEED_OPTIONS),
    *(f"{name}{{{options}}}" for name, several in OPTIONS.items() for options in several),
    *UPSTREAM,
]


def random_pipeline(rng: random.Random) -> str:
    """One to six passes."""
    return ",".join(rng.choice(ELEMENTS) for _ in range(rng.randrange(1, 7)))
