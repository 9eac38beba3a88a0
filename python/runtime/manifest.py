"""The manifest of an executable: JSON in, checked records out; everything that runs reads these and nothing else."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ..dialect.dtypes import numpy_dtype
from ..dialect.errors import RelaxError
from ..dialect.reports.report import Report
from ..dialect.symbolic import Expr, parse
from ..lowering.manifest_digest import BYTES, SYMBOL, digest_of
from ..weights.arrays import ArraySpec, dtype_text
from .library import Library

__all__ = [
    "FORMAT",
    "VERSION",
    "EntrySpec",
    "InnerSize",
    "Manifest",
    "StateSpec",
    "StepSpec",
    "SymbolSpec",
    "TargetSpec",
    "TensorSpec",
    "WeightSpec",
    "total_bytes",
]

FORMAT = "relaxir"
VERSION = 1

_T = TypeVar("_T")


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: name, dtype, and a shape of ints and symbolic expressions."""

    name: str
    dtype: Any
    shape: tuple[int | Expr, ...]

    def __str__(self) -> str:
        return f"{dtype_text(self.dtype)}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class WeightSpec:
    """A weight: its name, dtype and static shape, and for a prepared weight the raw weights it is made from."""

    name: str
    array: ArraySpec
    sources: tuple[str, ...] = ()


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


@dataclass(frozen=True)
class SymbolSpec:
    """A symbolic dimension and the values it may take; None is no limit."""

    name: str
    min: int | None
    max: int | None


@dataclass(frozen=True)
class InnerSize:
    """An expression over the symbols that is computed inside of an entry, and where that is."""

    expr: Expr
    of: str


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

    @property
    def input_positions(self) -> tuple[int, ...]:
        """Where the inputs are in the ABI, between the state."""
        state = {s.argument for s in self.state}
        return tuple(i for i in range(len(self.inputs) + len(state)) if i not in state)

    def __str__(self) -> str:
        inputs = ", ".join(f"{s.name}: {s}" for s in self.inputs)
        outputs = ", ".join(f"{s.name}: {s}" for s in self.outputs)
        state = ", ".join(f"{s.name}: {s.array}" for s in self.state)
        return f"{self.name}({inputs}) -> ({outputs})" + (f" updates ({state})" if state else "")


@dataclass(frozen=True)
class StepSpec:
    """A piece of weight preparation: raw weights in, prepared weights out; without a symbol it copies."""

    symbol: str | None
    gets: tuple[str, ...]
    sets: tuple[str, ...]
    arena_bytes: int


@dataclass(frozen=True)
class TargetSpec:
    """The processor that the code was made for, as LLVM names it, and whether the code calls the OpenMP runtime."""

    triple: str
    cpu: str
    features: str
    openmp: bool = False


@dataclass(frozen=True)
class Manifest:
    """A checked manifest.

    Attributes:
        data: the JSON object it was read from.
        fingerprint: of the weight transformation and layout; prepared weights carry it.
        entries, raw_weights, prepared_weights: by name, in order.
        steps: the preparation, in order.
        peak_bytes: most memory a step needs at once: its inputs, outputs and arena.
        report: what the compiler decided; empty in manifests from before there were reports.
        accesses: the places of accesses in code that checks all of them, by number; None where it checks none.
    """

    data: Mapping[str, Any]
    fingerprint: str
    target: TargetSpec
    entries: Mapping[str, EntrySpec]
    raw_weights: Mapping[str, WeightSpec]
    prepared_weights: Mapping[str, WeightSpec]
    steps: tuple[StepSpec, ...]
    peak_bytes: int
    report: Report
    accesses: tuple[str, ...] | None = None

    @property
    def symbols(self) -> tuple[str, ...]:
        """The C symbols of entries and steps, and that of the digest which ties the code to this manifest."""
        steps = (s.symbol for s in self.steps if s.symbol is not None)
        return tuple(dict.fromkeys([*(e.symbol for e in self.entries.values()), *steps, SYMBOL]))

    def check_code(self, library: Library) -> None:
        """Raises RelaxError when the code was compiled with another manifest: it would read and write beyond its tensors."""
        expected, got = library.constant(SYMBOL, BYTES), digest_of(self.data)
        if expected != got:
            raise RelaxError(
                f"{library.name}: expected the manifest it was compiled with, sha256 {expected.hex()[:16]}..., "
                f"got {got.hex()[:16]}...: it was edited, or belongs to other code"
            )

    @property
    def state(self) -> dict[str, StateSpec]:
        """What all entries together update, by name."""
        return {s.name: s for e in self.entries.values() for s in e.state}

    @property
    def is_identity(self) -> bool:
        """Whether preparation changes nothing: then raw weights are prepared weights."""
        return all(s.symbol is None and s.gets == s.sets for s in self.steps)

    @staticmethod
    def of(data: object, where: str = "manifest") -> Manifest:
        """Reads a manifest of version 1.

        Raises:
            RelaxError: a field is missing or wrong, with its path, e.g. ``manifest.entries[0].inputs[1].dtype``.
        """
        reader = _Reader(data, where)
        if reader.text("format") != FORMAT:
            raise RelaxError(f"{where}.format: expected '{FORMAT}', got '{reader.text('format')}'")
        if reader.size("version") != VERSION:
            raise RelaxError(f"{where}.version: expected {VERSION}, got {reader.size('version')}")
        target = reader.child("target")
        manifest = Manifest(
            data=cast("Mapping[str, Any]", data),
            fingerprint=reader.text("fingerprint"),
            target=TargetSpec(target.text("triple"), target.text("cpu"), target.text("features"), target.flag("openmp")),
            entries=_by_name(reader.records("entries", _entry), f"{where}.entries"),
            raw_weights=_by_name(reader.records("raw_weights", _weight), f"{where}.raw_weights"),
            prepared_weights=_by_name(reader.records("prepared_weights", _weight), f"{where}.prepared_weights"),
            steps=tuple(reader.records("steps", _step)),
            peak_bytes=reader.size("peak_bytes"),
            report=Report.of_json(reader.data["report"], f"{where}.report") if "report" in reader.data else Report(),
            accesses=reader.texts("accesses") if "accesses" in reader.data else None,
        )
        _check_entry_weights(manifest, where)
        _check_state(manifest, where)
        _check_steps(manifest, where)
        return manifest


class _Reader:
    """Reads fields of one JSON object; every error has the field's path."""

    def __init__(self, data: object, where: str):
        if not isinstance(data, Mapping):
            raise RelaxError(f"{where}: expected an object, got {type(data).__name__}")
        self.data = cast("Mapping[str, Any]", data)
        self.where = where

    def value(self, key: str) -> Any:
        if key not in self.data:
            raise RelaxError(f"{self.where}.{key}: expected a value, got none")
        return self.data[key]

    def text(self, key: str) -> str:
        value = self.value(key)
        if not isinstance(value, str):
            raise RelaxError(f"{self.where}.{key}: expected a string, got {value!r}")
        return value

    def identifier(self, key: str) -> str:
        value = self.text(key)
        if not (value.isascii() and value.isidentifier()):
            raise RelaxError(f"{self.where}.{key}: expected a C identifier, got {value!r}")
        return value

    def size(self, key: str) -> int:
        value = self.value(key)
        if type(value) is not int or value < 0:
            raise RelaxError(f"{self.where}.{key}: expected a number of 0 or more, got {value!r}")
        return value

    def limit(self, key: str) -> int | None:
        value = self.data.get(key)
        if value is not None and type(value) is not int:
            raise RelaxError(f"{self.where}.{key}: expected a number or null, got {value!r}")
        return value

    def flag(self, key: str) -> bool:
        """A truth value, false where the field is missing: version 1 had none at first."""
        value = self.data.get(key, False)
        if type(value) is not bool:
            raise RelaxError(f"{self.where}.{key}: expected true or false, got {value!r}")
        return value

    def items(self, key: str) -> list[Any]:
        value = self.value(key)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise RelaxError(f"{self.where}.{key}: expected a list, got {value!r}")
        return list(cast("Sequence[Any]", value))

    def texts(self, key: str) -> tuple[str, ...]:
        items = self.items(key) if key in self.data else []
        if not all(isinstance(i, str) for i in items):
            raise RelaxError(f"{self.where}.{key}: expected a list of strings, got {items!r}")
        return tuple(items)

    def child(self, key: str) -> _Reader:
        return _Reader(self.value(key), f"{self.where}.{key}")

    def records(self, key: str, make: Callable[[_Reader], _T]) -> list[_T]:
        return [make(_Reader(item, f"{self.where}.{key}[{i}]")) for i, item in enumerate(self.items(key))]


def _entry(reader: _Reader) -> EntrySpec:
    return EntrySpec(
        reader.text("name"),
        reader.identifier("symbol"),
        tuple(reader.records("symbols", lambda r: SymbolSpec(r.identifier("name"), r.limit("min"), r.limit("max")))),
        tuple(reader.records("inputs", _tensor)),
        tuple(reader.records("weights", _weight)),
        tuple(reader.records("outputs", _tensor)),
        reader.texts("checks"),
        tuple(reader.records("state", _state)) if "state" in reader.data else (),
        tuple(reader.records("sizes", _inner)) if "sizes" in reader.data else (),
        tuple(reader.records("memory", _inner)) if "memory" in reader.data else (),
        reader.size("safe") if "safe" in reader.data else (1 << 63) - 1,
    )


def _step(reader: _Reader) -> StepSpec:
    symbol = None if reader.value("symbol") is None else reader.identifier("symbol")
    return StepSpec(symbol, reader.texts("gets"), reader.texts("sets"), reader.size("arena_bytes"))


def _tensor(reader: _Reader) -> TensorSpec:
    shape = tuple(_dim(value, f"{reader.where}.shape") for value in reader.items("shape"))
    return TensorSpec(reader.text("name"), _dtype(reader), shape)


def _weight(reader: _Reader) -> WeightSpec:
    shape = tuple(_dim(value, f"{reader.where}.shape") for value in reader.items("shape"))
    static = tuple(d for d in shape if isinstance(d, int))
    if len(static) != len(shape):
        raise RelaxError(f"{reader.where}.shape: expected static dimensions for a weight, got [{', '.join(map(str, shape))}]")
    return WeightSpec(reader.text("name"), ArraySpec(_dtype(reader), static), reader.texts("sources"))


def _state(reader: _Reader) -> StateSpec:
    weight = _weight(reader)
    try:
        first = b64decode(reader.text("first"), validate=True)
    except ValueError:
        raise RelaxError(f"{reader.where}.first: expected base64, got {reader.text('first')!r}") from None
    if len(first) not in (weight.array.dtype.itemsize, weight.array.nbytes):
        raise RelaxError(f"{reader.where}.first: expected {weight.array.nbytes} bytes or one element, got {len(first)} bytes")
    return StateSpec(weight.name, weight.array, reader.size("argument"), first)


def _inner(reader: _Reader) -> InnerSize:
    dim = _dim(reader.text("size"), f"{reader.where}.size")
    if not isinstance(dim, Expr):
        raise RelaxError(f"{reader.where}.size: expected a symbolic expression, got {dim}")
    return InnerSize(dim, reader.text("of"))


def _dtype(reader: _Reader) -> Any:
    try:
        return numpy_dtype(reader.text("dtype"))
    except RelaxError as error:
        raise RelaxError(f"{reader.where}.dtype: {error}") from None


def _dim(value: object, where: str) -> int | Expr:
    dim = parse(value) if isinstance(value, str) else value
    if isinstance(dim, Expr) or (type(dim) is int and 0 <= dim < 1 << 63):
        return dim
    raise RelaxError(f"{where}: expected a size or a symbolic expression, got {value!r}")


def _by_name(records: Sequence[Any], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for record in records:
        if record.name in found:
            raise RelaxError(f"{where}: expected names that differ, got '{record.name}' twice")
        found[record.name] = record
    return found


def _check_entry_weights(manifest: Manifest, where: str) -> None:
    for entry in manifest.entries.values():
        for weight in entry.weights:
            found = manifest.prepared_weights.get(weight.name)
            if found is None or found.array != weight.array:
                raise RelaxError(
                    f"{where}: weight '{weight.name}' of entry '{entry.name}': expected a prepared weight {weight.array}, "
                    f"got {'none' if found is None else found.array}"
                )


def _check_state(manifest: Manifest, where: str) -> None:
    for entry in manifest.entries.values():
        positions = {s.argument for s in entry.state}
        if len(positions) < len(entry.state) or not positions <= set(range(len(entry.inputs) + len(entry.state))):
            raise RelaxError(f"{where}: entry '{entry.name}': expected a position of its own for each state, got {positions}")
        for state in entry.state:
            shared = manifest.state[state.name]
            if (state.array, state.first) != (shared.array, shared.first):
                raise RelaxError(
                    f"{where}: state '{state.name}': expected {shared.array} and one first value in all entries, "
                    f"got {state.array}"
                )


def _check_steps(manifest: Manifest, where: str) -> None:
    made: list[str] = []
    for i, step in enumerate(manifest.steps):
        unknown = [n for n in step.gets if n not in manifest.raw_weights]
        unknown += [n for n in step.sets if n not in manifest.prepared_weights]
        if unknown:
            raise RelaxError(f"{where}.steps[{i}]: expected names of weights, got '{unknown[0]}'")
        inputs = [manifest.raw_weights[n].array for n in step.gets]
        outputs = [manifest.prepared_weights[n].array for n in step.sets]
        if step.symbol is None and inputs != outputs:
            raise RelaxError(
                f"{where}.steps[{i}]: expected a copy between equal shapes and dtypes, got {step.gets} to {step.sets}"
            )
        made += step.sets
    if sorted(made) != sorted(manifest.prepared_weights):
        raise RelaxError(f"{where}.steps: expected to make every prepared weight once, got {len(made)} results for "
                         f"{len(manifest.prepared_weights)} prepared weights")  # fmt: skip


def total_bytes(weights: Mapping[str, WeightSpec]) -> int:
    """Bytes of all these weights."""
    return sum(w.array.nbytes for w in weights.values())
