"""ONNX's own tests of backends, ``onnx.backend.test``: all by name, and one run by whoever takes a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

__all__ = ["arrays_of", "compare", "tests"]

#: The kinds of tests whose models are in the package; those of kind ``real`` are downloaded.
_KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def tests() -> dict[str, Any]:
    """All tests by name."""
    return {t.name: t for kind in _KINDS for t in load_model_tests(kind=kind)}


def compare(test: Any, load: Callable[[Any], Callable[[list[Any]], Any]]) -> None:
    """Runs a test. Raises AssertionError where a result is another than the test's.

    Args:
        test: one of :func:`tests`.
        load: of a model gives what computes its results, of inputs in the model's order.
    """
    model = test.model if test.model is not None else onnx.load(os.path.join(test.model_dir, "model.onnx"))
    run = load(model)
    for inputs, wanted in _data(test, model):
        pairs = [_sized(f, w) for f, w in zip(run(inputs), arrays_of(wanted), strict=True)]
        Runner.assert_similar_outputs([w for _, w in pairs], [f for f, _ in pairs], test.rtol, test.atol)


def _data(test: Any, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    if test.data_sets is not None:
        yield from ((list(i), list(o)) for i, o in test.data_sets)
        return
    for folder in sorted(Path(test.model_dir).glob("test_data_set_*")):
        yield tuple(
            [_stored(p, value) for i, value in enumerate(values) if (p := folder / f"{kind}_{i}.pb").exists()]
            for kind, values in (("input", model.graph.input), ("output", model.graph.output))
        )  # fmt: skip


def _stored(path: Path, value: Any) -> Any:
    content = path.read_bytes()
    kind = value.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def arrays_of(values: Iterable[Any]) -> list[Any]:
    """Tests have arrays, protos of tensors, and lists of them."""
    return [_array(v) for v in values]


def _sized(found: Any, wanted: Any) -> tuple[Any, Any]:
    """The comparison of sequences takes lengths of what is in them, which a scalar has not."""
    if not isinstance(found, list) or not isinstance(wanted, list):
        return found, wanted
    items: tuple[list[Any], list[Any]] = found, wanted
    assert [np.shape(f) for f in items[0]] == [np.shape(w) for w in items[1]]
    return [np.atleast_1d(f) for f in items[0]], [np.atleast_1d(w) for w in items[1]]


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if isinstance(value, list | tuple) else np.asarray(value)
