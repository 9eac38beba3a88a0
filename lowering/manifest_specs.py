"""The records of a manifest: entries, weights, state, steps, target; each to JSON, and from JSON, checked field by field."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..dialect.array_spec import ArraySpec, dtype_text
from ..dialect.cut import Cut
from ..dialect.dtypes import dtype_name, numpy_dtype
from ..dialect.errors import RelaxError
from ..dialect.packed_layout import PackedLayout
from ..dialect.symbolic import Expr, InnerSize, parse
from .json_reader import Reader

__all__ = [
    "EntrySpec",
    "ExternSpec",
    "Json",
    "PreparedSpec",
    "RawSpec",
    "StateSpec",
    "SymbolSpec",
    "TargetSpec",
    "TensorSpec",
    "WeightSpec",
    "total_bytes",
]

#: A JSON object.
Json = dict[str, Any]

_Value = TypeVar("_Value")
#: What calls take beside inputs.
_OF_CALLS = frozenset({"entry", "state", "out"})


@dataclass(frozen=True)
class TensorSpec:
    """A tensor at the boundary of compiled code: name, dtype, and a shape of ints and symbolic expressions."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | Expr, ...]

    def __str__(self) -> str:
        return f"{dtype_text(self.dtype)}[{', '.join(map(str, self.shape))}]"

    def as_json(self) -> Json:
        return _tensor_json(self.name, self.dtype, self.shape)

    @staticmethod
    def read(reader: Reader) -> TensorSpec:
        shape = tuple(_dim(value, f"{reader.where}.shape") for value in reader.items("shape"))
        return TensorSpec(reader.text("name"), _dtype(reader), shape)


@dataclass(frozen=True)
class WeightSpec:
    """A weight: its name, dtype and static shape."""

    name: str
    array: ArraySpec

    def as_json(self) -> Json:
        return _tensor_json(self.name, self.array.dtype, self.array.shape)

    @staticmethod
    def read(reader: Reader) -> WeightSpec:
        return WeightSpec(reader.text("name"), _static(reader))


@dataclass(frozen=True)
class RawSpec(WeightSpec):
    """A raw weight.

    Attributes:
        cut: of several ranks, how the checkpoint's tensor is cut, of which ``array`` is a rank's part; None where it is whole.
        value: bytes of its value, or of the one element that is everywhere, where the module knows what no checkpoint holds.
    """

    value: bytes | None = None
    cut: Cut | None = None

    @property
    def whole(self) -> WeightSpec:
        """As the checkpoint has it."""
        array = self.array
        return self if self.cut is None else WeightSpec(self.name, ArraySpec(array.dtype, self.cut.whole(array.shape)))

    def as_json(self) -> Json:
        cut = {} if self.cut is None else {"cut": [self.cut.axis, *self.cut.pieces]}
        return super().as_json() | ({} if self.value is None else {"value": b64encode(self.value).decode()}) | cut

    @staticmethod
    def read(reader: Reader) -> RawSpec:
        array = _static(reader)
        value = _bytes_of(reader, "value", array) if "value" in reader.data else None
        return RawSpec(reader.text("name"), array, value, _cut(reader) if "cut" in reader.data else None)


@dataclass(frozen=True)
class PreparedSpec(WeightSpec):
    """A prepared weight.

    Attributes:
        sources: names of the raw weights that it is made from.
        ops: names of the ops that make it, in order; none for a copy.
        layout: how it is packed, None where it is not.
    """

    sources: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    layout: PackedLayout | None = None

    def as_json(self) -> Json:
        packed = {} if self.layout is None else {"layout": str(self.layout)}
        return super().as_json() | {"sources": list(self.sources), "ops": list(self.ops)} | packed

    @staticmethod
    def read(reader: Reader) -> PreparedSpec:
        sources, ops, layout = reader.texts("sources"), reader.texts("ops"), _layout(reader)
        return PreparedSpec(reader.text("name"), _static(reader), sources, ops, layout)


@dataclass(frozen=True)
class StateSpec:
    """A tensor that calls update in place.

    Attributes:
        name: what users call it; entries share state of one name.
        array: its dtype and static shape.
        argument: its position among inputs and state in the ABI.
        first: bytes of its first value, or of the one element that is everywhere.
    """

    name: str
    array: ArraySpec
    argument: int
    first: bytes

    def as_json(self) -> Json:
        tensor = _tensor_json(self.name, self.array.dtype, self.array.shape)
        return tensor | {"argument": self.argument, "first": b64encode(self.first).decode()}

    @staticmethod
    def read(reader: Reader) -> StateSpec:
        name, array = reader.text("name"), _static(reader)
        return StateSpec(name, array, reader.size("argument"), _bytes_of(reader, "first", array))


@dataclass(frozen=True)
class SymbolSpec:
    """A symbolic dimension and the values it may take; None is no limit."""

    name: str
    min: int | None
    max: int | None

    def as_json(self) -> Json:
        return {"name": self.name, "min": self.min, "max": self.max}

    @staticmethod
    def read(reader: Reader) -> SymbolSpec:
        return SymbolSpec(reader.identifier("name"), reader.limit("min"), reader.limit("max"))


@dataclass(frozen=True)
class EntrySpec:
    """A function that can be called.

    Attributes:
        name: what users call it.
        symbol: its C symbol.
        symbols: symbolic dimensions in the order of the ABI.
        inputs, outputs: tensors that come with each call.
        state: tensors that stay between calls.
        weights: tensors that are bound, static shapes.
        checks: texts of the run-time checks.
        sizes: what must be 0 or more, and must not divide by 0.
        memory: bytes that must be below 2**63, and are as long as no symbol is greater than ``safe``.
        bounded: names of outputs whose sizes data decides, each with the output that says which part of it is the result.
        keyword: names of the inputs that calls have to name, the last ones.
    """

    name: str
    symbol: str
    symbols: tuple[SymbolSpec, ...]
    inputs: tuple[TensorSpec, ...]
    weights: tuple[WeightSpec, ...]
    outputs: tuple[TensorSpec, ...]
    checks: tuple[str, ...]
    state: tuple[StateSpec, ...] = ()
    sizes: tuple[InnerSize, ...] = ()
    memory: tuple[InnerSize, ...] = ()
    safe: int = (1 << 63) - 1
    bounded: tuple[tuple[str, str], ...] = ()
    keyword: tuple[str, ...] = ()

    @property
    def positional(self) -> int:
        """How many inputs calls may take by position. What a call takes beside inputs cannot be the name of one there."""
        return len(self.inputs) - (0 if _OF_CALLS & {*self.keyword} else len(self.keyword))

    def call_of(self, inputs: Sequence[_Value]) -> tuple[tuple[_Value, ...], dict[str, Any]]:
        """Inputs in their order as a call takes them: by position and by name."""
        count = self.positional
        return tuple(inputs[:count]), {s.name: v for s, v in zip(self.inputs[count:], inputs[count:], strict=True)}

    @property
    def results(self) -> tuple[TensorSpec, ...]:
        """What a call gives: the outputs, without those that are sizes of others."""
        sizes = {name for _, name in self.bounded}
        return tuple(o for o in self.outputs if o.name not in sizes)

    @property
    def input_positions(self) -> tuple[int, ...]:
        """Where the inputs are in the ABI, between the state."""
        state = {s.argument for s in self.state}
        return tuple(i for i in range(len(self.inputs) + len(state)) if i not in state)

    @property
    def shapes(self) -> list[tuple[int | Expr, ...]]:
        """Those of all tensors in the order of the ABI: inputs, state among them, weights, outputs."""
        places = [*zip(self.input_positions, (s.shape for s in self.inputs), strict=True)]
        places += [(s.argument, s.array.shape) for s in self.state]
        first = [shape for _, shape in sorted(places, key=lambda place: place[0])]
        return [*first, *(w.array.shape for w in self.weights), *(o.shape for o in self.outputs)]

    def __str__(self) -> str:
        taken = [f"{s.name}: {s}" for s in self.inputs]
        if self.positional < len(taken):
            taken.insert(self.positional, "*")
        inputs = ", ".join(taken)
        bounded = {name for name, _ in self.bounded}
        outputs = ", ".join(f"{s.name}: {'at most ' if s.name in bounded else ''}{s}" for s in self.results)
        state = ", ".join(f"{s.name}: {s.array}" for s in self.state)
        return f"{self.name}({inputs}) -> ({outputs})" + (f" updates ({state})" if state else "")

    def as_json(self) -> Json:
        return {
            "name": self.name,
            "symbol": self.symbol,
            "symbols": [s.as_json() for s in self.symbols],
            "inputs": [s.as_json() for s in self.inputs],
            "state": [s.as_json() for s in self.state],
            "weights": [s.as_json() for s in self.weights],
            "outputs": [s.as_json() for s in self.outputs],
            "checks": list(self.checks),
            "sizes": [_inner_json(s) for s in self.sizes],
            "memory": [_inner_json(s) for s in self.memory],
            "safe": self.safe,
        } | self._optional_json()

    def _optional_json(self) -> Json:
        """What most entries have not, and the first manifests had not."""
        bounded: Json = {"bounded": [{"output": o, "sizes": s} for o, s in self.bounded]} if self.bounded else {}
        return bounded | ({"keyword": list(self.keyword)} if self.keyword else {})

    @staticmethod
    def read(reader: Reader) -> EntrySpec:
        return EntrySpec(
            reader.text("name"),
            reader.identifier("symbol"),
            tuple(reader.records("symbols", SymbolSpec.read)),
            tuple(reader.records("inputs", TensorSpec.read)),
            tuple(reader.records("weights", WeightSpec.read)),
            tuple(reader.records("outputs", TensorSpec.read)),
            reader.texts("checks"),
            tuple(reader.records("state", StateSpec.read)) if "state" in reader.data else (),
            tuple(reader.records("sizes", _inner)) if "sizes" in reader.data else (),
            tuple(reader.records("memory", _inner)) if "memory" in reader.data else (),
            reader.size("safe") if "safe" in reader.data else (1 << 63) - 1,
            tuple(reader.records("bounded", _bounded)) if "bounded" in reader.data else (),
            reader.texts("keyword") if "keyword" in reader.data else (),
        )


@dataclass(frozen=True)
class ExternSpec:
    """A function of another library that code calls.

    Attributes:
        symbol: its name in C.
        library: which one has it; empty where the process has.
    """

    symbol: str
    library: str = ""

    def as_json(self) -> Json:
        return {"symbol": self.symbol, "library": self.library}

    @staticmethod
    def read(reader: Reader) -> ExternSpec:
        return ExternSpec(reader.identifier("symbol"), reader.text("library"))


@dataclass(frozen=True)
class TargetSpec:
    """The processor that the code was made for, as LLVM names it.

    Attributes:
        triple, cpu, features: LLVM's names.
        openmp: whether the code calls the OpenMP runtime.
        backend: whose code it is; what that has to say beyond this is in the manifest under its name.
    """

    triple: str
    cpu: str
    features: str
    openmp: bool = False
    backend: str = "cpu"

    def as_json(self) -> Json:
        found: Json = {"triple": self.triple, "cpu": self.cpu, "features": self.features, "openmp": self.openmp}
        return found if self.backend == "cpu" else found | {"backend": self.backend}

    @staticmethod
    def read(reader: Reader) -> TargetSpec:
        backend = reader.text("backend") if "backend" in reader.data else "cpu"  # version 1 had no other at first
        return TargetSpec(reader.text("triple"), reader.text("cpu"), reader.text("features"), reader.flag("openmp"), backend)


def _tensor_json(name: str, dtype: np.dtype[Any], shape: Sequence[int | Expr]) -> Json:
    return {"name": name, "shape": [d if isinstance(d, int) else str(d) for d in shape], "dtype": dtype_name(dtype)}


def _layout(reader: Reader) -> PackedLayout | None:
    """How a weight is packed, where the field is."""
    if "layout" not in reader.data:
        return None
    try:
        return PackedLayout.parse(reader.text("layout"))
    except RelaxError as error:
        raise RelaxError(f"{reader.where}.layout: {error}") from None


def _static(reader: Reader) -> ArraySpec:
    shape = tuple(_dim(value, f"{reader.where}.shape") for value in reader.items("shape"))
    static = tuple(d for d in shape if isinstance(d, int))
    if len(static) != len(shape):
        raise RelaxError(f"{reader.where}.shape: expected static dimensions for a weight, got [{', '.join(map(str, shape))}]")
    return ArraySpec(_dtype(reader), static)


def _bytes_of(reader: Reader, key: str, array: ArraySpec) -> bytes:
    """A tensor's bytes, or those of the one element that is everywhere."""
    found = reader.base64(key)
    if len(found) in (array.dtype.itemsize, array.nbytes):
        return found
    raise RelaxError(f"{reader.where}.{key}: expected {array.nbytes} bytes or one element, got {len(found)} bytes")


def _cut(reader: Reader) -> Cut:
    numbers = reader.items("cut")
    if len(numbers) < 2 or any(type(n) is not int or n < 0 for n in numbers):
        raise RelaxError(f"{reader.where}.cut: expected an axis and sizes, got {numbers}")
    return Cut(numbers[0], tuple(numbers[1:]))


def _inner_json(size: InnerSize) -> Json:
    return {"size": str(size.expr), "of": size.of}


def _inner(reader: Reader) -> InnerSize:
    dim = _dim(reader.text("size"), f"{reader.where}.size")
    if isinstance(dim, Expr):
        return InnerSize(dim, reader.text("of"))
    raise RelaxError(f"{reader.where}.size: expected a symbolic expression, got {dim}")


def _bounded(reader: Reader) -> tuple[str, str]:
    return reader.text("output"), reader.text("sizes")


def _dtype(reader: Reader) -> np.dtype[Any]:
    try:
        return numpy_dtype(reader.text("dtype"))
    except RelaxError as error:
        raise RelaxError(f"{reader.where}.dtype: {error}") from None


def _dim(value: object, where: str) -> int | Expr:
    dim = parse(value) if isinstance(value, str) else value
    if isinstance(dim, Expr) or (type(dim) is int and 0 <= dim < 1 << 63):
        return dim
    raise RelaxError(f"{where}: expected a size or a symbolic expression, got {value!r}")


def total_bytes(weights: Mapping[str, WeightSpec]) -> int:
    """Bytes of all these weights."""
    return sum(w.array.nbytes for w in weights.values())
