"""``compare``: what two models compute, of whatever kind, and where they begin to differ."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..dialect.checks import expect, expect_text
from ..dialect.errors import RelaxError
from ..module import Module
from ..weights.opening import decoded, open_tensors
from .comparison import Comparison, Settings, compare_code, compare_executable, compare_modules, compare_passes

if TYPE_CHECKING:
    from ..runtime.executable import Executable

__all__ = ["compare"]

#: The ends of names of models that other frameworks run.
_FRAMEWORKS = (".pt2", ".onnx")


def compare(
    expected: Module | str | os.PathLike[str],
    found: Module | Executable | None = None,
    *,
    pipeline: str | None = None,
    target: str = "cpu",
    weights: Mapping[str, ArrayLike] | str | os.PathLike[str] | None = None,
    inputs: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    values: bool = False,
) -> Comparison:
    """Runs two models on the same inputs and weights, and compares their results; where these differ, the values inside.

    Values inside are those of the same op, type and place; of a program of torch and an ONNX model, those of its graph. They
    lie in a folder for temporary files, and memory holds one of each side. Where passes or the compiler bring the difference,
    the first pass that does is found by bisection.

    Args:
        expected: a module, by its reference semantics; or the path of a .pt2 file (torch) or .onnx file (ONNX Runtime).
        found: what is compared with it, a module or an executable. None: of a module its compiled code, or what passes make of
            it; of a path its import.
        pipeline: passes on relax to compare a module with itself after.
        target: what a module is compiled for.
        weights: raw weights by name, or a file or folder with them; random ones by default, of a path its own.
        inputs: of an entry by name; random ones by default.
        sizes: of symbols in random inputs; 4 by default.
        seed: of what is random: floats of the normal distribution, integers of 0 and 1.
        tolerance: what floats may be off by, relative to the largest; by default what :data:`.differences.TOLERANCES` says.
        values: whether to compare values inside also where results are equal.

    Raises:
        RelaxError: a file cannot be read; both a pipeline and ``found`` are given; or a side cannot be run on these inputs.
    """
    expect_text(pipeline, "a pipeline as text", optional=True)
    if pipeline is not None and (found is not None or not isinstance(expected, Module)):
        raise RelaxError("expected a module alone with a pipeline")
    settings = Settings(tolerance, seed, _arrays(inputs), _weights(weights), sizes, values)
    if isinstance(expected, str | os.PathLike):
        from .framework_comparison import compare_framework

        path = os.path.expanduser(os.fspath(expected))
        if not path.endswith(_FRAMEWORKS):
            raise RelaxError(f"expected a module, or the path of a .pt2 or .onnx file, got '{path}'")
        if weights is not None:
            raise RelaxError(f"expected no weights: '{path}' has its own")
        return compare_framework(path, found, settings)
    expect(expected, Module, "a relaxir.Module, or the path of a .pt2 or .onnx file")
    if pipeline is not None:
        return compare_passes(expected, pipeline, settings)
    if found is None:
        return compare_code(expected, target, settings)
    if isinstance(found, Module):
        return compare_modules(expected, found, settings)
    return compare_executable(expected, found, settings)


def _arrays(given: Mapping[str, ArrayLike] | None) -> dict[str, np.ndarray[Any, Any]]:
    return {name: np.asarray(array) for name, array in (given or {}).items()}


def _weights(given: Mapping[str, ArrayLike] | str | os.PathLike[str] | None) -> dict[str, np.ndarray[Any, Any]]:
    """Those of a file are mapped where its format can be."""
    if not isinstance(given, str | os.PathLike):
        return _arrays(given)
    source = decoded(open_tensors(given))
    return {name: source.get(name) for name in source}
