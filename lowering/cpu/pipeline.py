"""The passes that take relax to the LLVM dialect for a CPU, as one text that ``relax-opt`` runs as well."""

from __future__ import annotations

from .check_accesses import FAULT_BYTES

__all__ = [
    "BOUNDARY", "BUFFERS", "EXPANSIONS", "FUSION", "TO_LLVM", "building_pipeline", "lowering_pipeline", "outlining_pipeline",
    "planning_pipeline",
]  # fmt: skip

# What the module is for is in it already; options say what the text would not show otherwise.
BOUNDARY = ("relax-check-entries", "relax-partition-transforms", "relax-describe-entries", "relax-check-scalars")
FUSION = (
    "relax-drop-empty", "inline", "canonicalize", "cse",
    "relax-move-checks-first", "relax-drop-empty", "relax-repeat-producers",
    "relax-keep-initial-values", "func.func(linalg-fuse-elementwise-ops,resolve-shaped-type-result-dims)",
    "relax-keep-initial-values{undo=true}", "canonicalize", "cse", "symbol-dce",
    "relax-flatten-epilogues", "relax-outline-kernels",
    "relax-keep-initial-values", "func.func(linalg-fuse-elementwise-ops)", "relax-keep-initial-values{undo=true}",
    "canonicalize", "cse", "relax-restore-destinations", "relax-report-kernels",
)  # fmt: skip
BUFFERS = ("relax-share-frames", "relax-carry-in-place", "relax-add-destinations", "relax-bufferize", "relax-share-loops")
EXPANSIONS = ("relax-expand-math", "relax-expand-fma", "relax-expand-narrow-floats")
TO_LLVM = (
    "relax-set-linkage",
    "cse", "expand-strided-metadata", "lower-affine", "convert-scf-to-cf",
    "relax-check-allocations", "relax-lower-checks",
    "convert-math-to-llvm", "convert-math-to-libm", "convert-vector-to-llvm{reassociate-fp-reductions=true}",
    "finalize-memref-to-llvm{use-aligned-alloc=true}", "convert-to-llvm",
    # LLVM joins and drops blocks by itself: 0.14 s of ResNet-50's compilation with that, 0.08 without.
    "canonicalize{region-simplify=disabled}", "cse", "reconcile-unrealized-casts",
)  # fmt: skip


# From relax to calls of kernels: these rewrite what is close to each other, so layers that are alike stay so (``layers/``).
_OUTLINING = ("relax-to-linalg", *FUSION[:-1])
_PLANNING = (
    *BOUNDARY, *_OUTLINING, "relax-sink-frames", FUSION[-1], *BUFFERS,
    "relax-merge-kernels{of=steps}", "relax-plan-contractions", "relax-plan-loops", "relax-merge-kernels{of=entries}",
)  # fmt: skip
_MERGING = "relax-merge-kernels"


def lowering_pipeline(checked: bool = False) -> str:
    """The passes in order, of a module that says what it is for (``relax-set-target``).

    Args:
        checked: whether every access of the code says that it is inside of its buffer.
    """
    return f"{planning_pipeline()},{building_pipeline(checked)}"


def planning_pipeline(merged: bool = True) -> str:
    """The passes until it is decided what each kernel is.

    Args:
        merged: whether kernels that differ in sizes alone become one; else each is what the report tells of.
    """
    return ",".join(p for p in _PLANNING if merged or not p.startswith(_MERGING))


def outlining_pipeline() -> tuple[str, str, str]:
    """The same, cut into those in front of linalg, those until kernels are called, and those behind."""
    first, last = len(BOUNDARY), len(BOUNDARY) + len(_OUTLINING)
    parts = (_PLANNING[:first], _PLANNING[first:last], _PLANNING[last:])
    before, outlining, behind = (",".join(part) for part in parts)
    return before, outlining, behind


def building_pipeline(checked: bool = False) -> str:
    """The passes behind these, which build kernels and call them."""
    notes, checks = (("relax-note-ops",), ("relax-check-accesses",)) if checked else ((), ())
    arena = f"relax-use-arena{{reserved={FAULT_BYTES}}}" if checked else "relax-use-arena"
    elements = (
        *notes, "relax-lower-kernels", "relax-lend-memory", arena,
        "relax-share-copies", "relax-merge-kernels{of=copies}", "relax-lower-kernels{all=true}",
        "relax-call-collectives", "relax-call-externs", *EXPANSIONS, *checks, *TO_LLVM, "relax-drop-arguments",
    )  # fmt: skip
    return ",".join(elements)
