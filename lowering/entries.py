"""What functions are to their callers, as attributes that last from relax to LLVM: written once, read by every later step.

``relax.entry`` on a function is its entry of the manifest (:class:`.manifest_specs.EntrySpec`), with ``updates``, the positions
of results that are a state's next value with those of the arguments they go into, and ``step`` for one that prepares weights::

    relax.entry = {name = "main", symbol = "relaxir_main", symbols = [{min = 0 : i64, name = "n"}],
                   inputs = [{dtype = "f32", name = "x", shape = ["n", 64]}], ...}

``relax.preparation`` on the module is the manifest's part about weights: raw and prepared ones, steps, the fingerprint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ..dialect.bindings import func, ir
from ..dialect.errors import RelaxError
from ..dialect.functions import functions
from .json_reader import Reader
from .manifest_specs import EntrySpec, PreparedSpec, RawSpec
from .manifest_steps import StepSpec
from .marks import ENTRY, PREPARATION
from .plain_attributes import from_attribute, to_attribute

__all__ = [
    "Entry",
    "Preparation",
    "entries_of",
    "entry_of",
    "lowered_entries",
    "preparation_of",
    "write_entry",
    "write_preparation",
]


_Op = TypeVar("_Op", bound=ir.OpView)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Entry:
    """A function that is called from outside.

    Attributes:
        spec: what its callers see.
        updates: of each result that is a state's next value, the argument that it goes into; positions in the relax function.
        is_step: whether it prepares weights.
    """

    spec: EntrySpec
    updates: Mapping[int, int] = field(default_factory=dict[int, int])
    is_step: bool = False


@dataclass(frozen=True)
class Preparation:
    """How the prepared weights of all entries come to be.

    Attributes:
        fingerprint: of the weight transformation and layout; prepared weights carry it.
        raw_weights, prepared_weights: in the order of the manifest.
        steps: what to run, in order. How much memory each takes is not known yet.
    """

    fingerprint: str
    raw_weights: tuple[RawSpec, ...]
    prepared_weights: tuple[PreparedSpec, ...]
    steps: tuple[StepSpec, ...]


def write_entry(function: func.FuncOp, entry: Entry) -> None:
    """Writes down what a function is to its callers; in place."""
    more = {"updates": [[r, a] for r, a in entry.updates.items()], "step": entry.is_step}
    function.attributes[ENTRY] = attribute = to_attribute(entry.spec.as_json() | more)
    _remember(attribute, entry)


def entry_of(function: ir.OpView) -> Entry | None:
    """What a function is to its callers; None for one that only other functions call."""
    if ENTRY not in function.attributes:
        return None
    try:
        return _remembered(function.attributes[ENTRY], _read_entry)
    except RelaxError as error:
        raise RelaxError(error.args[0], function.location) from None


def entries_of(module: ir.Operation) -> list[tuple[func.FuncOp, Entry]]:
    """The functions that are called from outside: entries, then steps, these in the order in which they first run."""
    return _described(module, functions(module))


def lowered_entries(module: ir.Operation) -> list[tuple[ir.OpView, Entry]]:
    """The same, whatever functions have become."""
    return _described(module, list(module.regions[0].blocks[0].operations))


def _described(module: ir.Operation, candidates: Sequence[_Op]) -> list[tuple[_Op, Entry]]:
    found = [(f, entry) for f in candidates if (entry := entry_of(f)) is not None]
    if not any(entry.is_step for _, entry in found):
        return found
    order = {symbol: i for i, symbol in enumerate(dict.fromkeys(n for s in preparation_of(module).steps for n in s.symbols))}
    steps = [(f, entry) for f, entry in found if entry.is_step]
    return [(f, e) for f, e in found if not e.is_step] + sorted(steps, key=lambda step: order[step[1].spec.symbol])


def write_preparation(module: ir.Operation, preparation: Preparation) -> None:
    """Writes down how weights are prepared; in place."""
    content = {
        "fingerprint": preparation.fingerprint,
        "raw_weights": [w.as_json() for w in preparation.raw_weights],
        "prepared_weights": [w.as_json() for w in preparation.prepared_weights],
        "steps": [s.as_json() for s in preparation.steps],
    }
    with module.context:
        module.attributes[PREPARATION] = attribute = to_attribute(content)
    _remember(attribute, preparation)


def preparation_of(module: ir.Operation) -> Preparation:
    """How weights are prepared. Raises RelaxError when the module does not say."""
    if PREPARATION not in module.attributes:
        text = f"expected a module with {PREPARATION}, which relax-partition-transforms writes, got none"
        raise RelaxError(text, module.location)
    return _remembered(module.attributes[PREPARATION], _read_preparation)


def _read_entry(content: Any) -> Entry:
    reader = Reader(content, ENTRY)
    updates = {result: argument for result, argument in reader.items("updates")}
    return Entry(EntrySpec.read(reader), updates, reader.flag("step"))


def _read_preparation(content: Any) -> Preparation:
    steps = [{"symbol": None} | step for step in content["steps"]]
    reader = Reader(content | {"steps": steps}, PREPARATION)
    return Preparation(
        reader.text("fingerprint"),
        tuple(reader.records("raw_weights", RawSpec.read)),
        tuple(reader.records("prepared_weights", PreparedSpec.read)),
        tuple(reader.records("steps", StepSpec.read)),
    )


# Ten passes ask, and reading takes 20 ms for BERT's 200 weights. An object of MLIR keeps its context alive: what is remembered
# has none, and goes by where a context has the attribute, of which it has one.
_KNOWN: WeakKeyDictionary[ir.Context, dict[int, Any]] = WeakKeyDictionary()


def _remember(attribute: ir.Attribute, value: Any) -> None:
    _KNOWN.setdefault(attribute.context, {})[hash(attribute)] = value


def _remembered(attribute: ir.Attribute, read: Callable[[Any], _T]) -> _T:
    known = _KNOWN.get(attribute.context, {})
    if hash(attribute) not in known:
        _remember(attribute, read(from_attribute(attribute)))
    return _KNOWN[attribute.context][hash(attribute)]
