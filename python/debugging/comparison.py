"""``compare``: one model against another, first its results, then, where these differ, the values inside, one by one.

What is compared with what::

    MODULE                      compiled code against the reference semantics
    MODULE, pipeline            what passes make of it against the module
    A, B                        B against A: modules by their reference semantics, artifacts (.relax) by their code
    .pt2 or .onnx               the import against torch or ONNX Runtime

Values of one side lie in a folder, those of the other are made one after the other: memory holds the weights, the results and
one value at a time, and what a graph still has to read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler import compile
from ..dialect.analysis.known_sizes import argument_shapes
from ..dialect.bindings import ir
from ..dialect.constants import constant_arrays
from ..dialect.elements import to_numpy
from ..dialect.errors import RelaxError
from ..dialect.functions import find_function, full_argument_names, functions, initial_state, is_private, name_of
from ..dialect.passes.pipeline_text import parse_pipeline
from ..dialect.printable import joined_lines
from ..dialect.symbolic import Expr
from ..module import Module
from .differences import Difference, difference
from .exposing import InnerValue, inner_values, stream_results, with_values
from .meaning import SIZES, arguments_for, entry_functions, normal_numbers, raw_weights, weight_numbers
from .runs import compiled_results, reference_results
from .value_store import ValueStore

if TYPE_CHECKING:
    from ..runtime.executable import Executable

__all__ = [
    "ComparedValue", "Comparison", "Settings", "compare_code", "compare_executable", "compare_modules", "compare_passes",
]  # fmt: skip

Array = np.ndarray[Any, Any]
#: Values that compiled code returns at once.
_GROUP = 64


@dataclass(frozen=True)
class Settings:
    """What models are run on, and what is equal. Random floats are of the normal distribution, integers are 0 and 1.

    Attributes:
        tolerance: as for :func:`.differences.difference`.
        seed: of inputs that are not given, and of weights.
        inputs: by name.
        weights: raw weights by name; those that are not there are what the module says, else random.
        sizes: of symbols in random inputs, 4 for those without.
        values: whether values inside are compared also where results are equal.
    """

    tolerance: float | None = None
    seed: int = 0
    inputs: Mapping[str, Array] | None = None
    weights: Mapping[str, Array] | None = None
    sizes: Mapping[str, int] | None = None
    values: bool = False

    def arguments(self, module: Module, entry: str) -> list[Array]:
        """Inputs of an entry, state among them, which has its first values."""
        operation = module.ir.operation
        self._check_sizes(operation)
        made = arguments_for(
            operation, entry, np.random.default_rng(self.seed), normal_numbers, {**SIZES, **(self.sizes or {})}
        )
        function, given = find_function(operation, entry), dict(self.inputs or {})
        state, names = initial_state(function), full_argument_names(function)
        first = {n: to_numpy(v) for n, v in state.items()}
        found = [
            np.broadcast_to(first[n], x.shape).copy() if n in first else given.pop(n, x)
            for n, x in zip(names, made, strict=False)
        ]
        if given:
            raise RelaxError(f"expected inputs out of {', '.join(names[: len(made)]) or 'none'}, got '{next(iter(given))}'")
        return found

    def _check_sizes(self, module: ir.Operation) -> None:
        """Raises RelaxError for a size that no entry has."""
        shapes = [shape for f in functions(module) if not is_private(f) for shape in argument_shapes(f).values()]
        names = {name for shape in shapes for dim in shape if isinstance(dim, Expr) for name in dim.names}
        unknown = next((name for name in self.sizes or {} if name not in names), None)
        if unknown is not None:
            raise RelaxError(f"expected sizes out of {', '.join(sorted(names)) or '(none)'}, got '{unknown}'")

    def raw(self, module: Module, entry: str) -> dict[str, Array]:
        """Raw weights of an entry."""
        sizes = {**SIZES, **(self.sizes or {})}
        made = raw_weights(module.ir.operation, entry, np.random.default_rng(self.seed + 1), weight_numbers, sizes)
        with module.context:
            known = constant_arrays(module.ir.operation)
        given = known | dict(self.weights or {})
        missing = [name for name in made if name not in given] if self.weights else []
        if missing:
            raise RelaxError(f"expected the raw weights of @{entry}, got others without '{missing[0]}'")
        return {name: given.get(name, array) for name, array in made.items()}


@dataclass(frozen=True)
class ComparedValue:
    """A result, or a value inside, of both sides.

    Attributes:
        entry: the function.
        name: of the result; of a value the op and its type.
        where: its place in the source; empty for results, and where none is known.
        difference: how far they are apart.
    """

    entry: str
    name: str
    where: str
    difference: Difference

    def __str__(self) -> str:
        return f"@{self.entry} {self.name}{f' at {self.where}' if self.where else ''}: {self.difference}"


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Attributes:
        expected: what one side is.
        found: what the other one is.
        results: those of all entries.
        values: values inside that both have, in the order in which they are computed; empty where none was looked at.
        culprit: the pass, or the part of the compiler, that brings the difference; empty where results are equal, or none
            can be told.
    """

    expected: str
    found: str
    results: tuple[ComparedValue, ...]
    values: tuple[ComparedValue, ...] = ()
    culprit: str = ""

    @property
    def equal(self) -> bool:
        """Whether all results are."""
        return all(r.difference.equal for r in self.results)

    @property
    def first(self) -> ComparedValue | None:
        """The first value inside that differs."""
        return next((v for v in self.values if not v.difference.equal), None)

    def as_json(self) -> dict[str, Any]:
        """What ``json.dumps`` takes."""
        return {**asdict(self), "equal": self.equal, "first": None if self.first is None else asdict(self.first)}

    def __str__(self) -> str:
        differing = [v for v in self.values if not v.difference.equal]
        lines = [f"expected: {self.expected}", f"found: {self.found}", *map(str, self.results)]
        lines += [f"brought by: {self.culprit}"] if self.culprit else []
        lines += [f"values inside: {len(self.values)} compared, {len(differing)} differ"] if self.values else []
        lines += [f"first: {differing[0]}"] if differing else []
        return joined_lines([*lines, "equal" if self.equal else "different"])


def compare_modules(expected: Module, found: Module, settings: Settings) -> Comparison:
    """Two modules by their reference semantics: results, and values inside of the same op, type and place."""
    entries = _entries(expected)
    sides = [(e, _reference(expected, e, settings), _reference(found, e, settings, expected)) for e in entries]
    results = [r for side in sides for r in _results(*side, settings)]
    comparison = Comparison("reference semantics", "reference semantics", tuple(results))
    if comparison.equal and not settings.values:
        return comparison
    return replace(comparison, values=tuple(v for e in entries for v in _inner(expected, found, e, settings)))


def compare_passes(module: Module, pipeline: str, settings: Settings) -> Comparison:
    """A module before and after passes; where they change its results, the first pass that does, and the values around it."""
    after = module.run(pipeline)
    comparison = replace(compare_modules(module, after, replace(settings, values=False)), values=())
    comparison = replace(comparison, expected="the module", found=f"the module after {pipeline}")
    if comparison.equal:
        return replace(comparison, values=compare_modules(module, after, settings).values) if settings.values else comparison
    passes, last = _first_bad(module, pipeline, settings)
    before = module.run(",".join(passes[: last - 1])) if last > 1 else module
    step = compare_modules(before, module.run(",".join(passes[:last])), replace(settings, values=True))
    return replace(comparison, values=step.values, culprit=f"pass {last} of {len(passes)}: {passes[last - 1]}")


def compare_code(module: Module, target: str, settings: Settings) -> Comparison:
    """Compiled code against the reference semantics; where results differ, the pass, or the op whose code does."""
    from ..lowering.backend import backend_of

    comparison = compare_executable(module, compile(module, target, cache=False), settings)
    comparison = replace(comparison, found=f"code for {target}")
    if comparison.equal and not settings.values:
        return comparison
    compiler = backend_of(target).compiler_for(target, backend_of(target).make_runtime().here())
    pipeline, laid_out = compiler.relax_pipeline(None, None), module.with_weight_layouts(compiler.weight_layouts)
    if not comparison.equal:
        passes = compare_passes(laid_out, pipeline, replace(settings, values=False))
        if not passes.equal:
            return replace(comparison, values=passes.values, culprit=passes.culprit)
    values = tuple(v for e in _entries(module) for v in _inner_code(module, e, target, settings))
    first = next((v for v in values if not v.difference.equal), None)
    told = "lowering of several ops to one kernel: relaxir reduce --differs makes it small"
    told = told if first is None else f"lowering of {first.name}"
    return replace(comparison, values=values, culprit="" if comparison.equal else told)


def compare_executable(module: Module, executable: Executable, settings: Settings) -> Comparison:
    """The results of compiled code against the reference semantics of a module."""
    sides = [(e, _reference(module, e, settings), _coded(executable, module, e, settings)) for e in _entries(module)]
    results = [r for side in sides for r in _results(*side, settings)]
    return Comparison("reference semantics", "the artifact", tuple(results))


def _entries(module: Module) -> list[str]:
    found = [name_of(f) for f in entry_functions(module.ir.operation)]
    if not found:
        raise RelaxError("expected a module with a function that can be called, got none")
    return found


def _reference(module: Module, entry: str, settings: Settings, model: Module | None = None) -> dict[str, Array]:
    """Results by name, for inputs and weights that are made for ``model``, by default the module itself."""
    model = model or module
    return reference_results(module.ir.operation, entry, settings.arguments(model, entry), settings.raw(model, entry))


def _coded(executable: Executable, module: Module, entry: str, settings: Settings) -> dict[str, Array]:
    if entry not in executable.entries:
        raise RelaxError(f"expected an artifact with entry '{entry}', got {', '.join(executable.entries)}")
    if executable.manifest.raw_weights:
        raw = settings.raw(module, entry)
        executable.bind(executable.prepare({n: raw[n] for n in executable.manifest.raw_weights if n in raw}))
    return compiled_results(executable, entry, settings.arguments(module, entry))


def _results(
    entry: str, expected: Mapping[str, Array], found: Mapping[str, Array], settings: Settings
) -> Iterator[ComparedValue]:
    """Results by name."""
    for name, array in expected.items():
        missing = Difference(False, reason="there is no such result")
        told = difference(array, found[name], settings.tolerance) if name in found else missing
        yield ComparedValue(entry, name, "", told)


def _first_bad(module: Module, pipeline: str, settings: Settings) -> tuple[list[str], int]:
    """The passes, and how many of them it takes until results differ, by bisection."""
    passes = [e.text for e in parse_pipeline(pipeline)]
    good, bad = 0, len(passes)
    while bad - good > 1:
        middle = (good + bad) // 2
        after = module.run(",".join(passes[:middle]))
        equal = compare_modules(module, after, replace(settings, values=False))
        good, bad = (middle, bad) if all(r.difference.equal for r in equal.results) else (good, middle)
    return passes, bad


def _inner(expected: Module, found: Module, entry: str, settings: Settings) -> Iterator[ComparedValue]:
    """Values of the same op, type and place in both, in the order of the second one; places of different files do not count."""
    inputs, raw = settings.arguments(expected, entry), settings.raw(expected, entry)
    sides = [[inner_values(m, entry, placed) for m in (expected, found)] for placed in (True, False)]
    shared = [{v.name for v in one} & {v.name for v in other} for one, other in sides]
    (ones, others), wanted = next((both for both in zip(sides, shared, strict=True) if both[1]), (sides[0], shared[0]))
    compared = list[ComparedValue]()
    with tempfile.TemporaryDirectory(prefix="relaxir-compare-") as folder:
        store = ValueStore(folder)

        def keep(value: InnerValue, array: Array) -> None:
            if value.name in wanted:
                store.write(value.name, array)

        def check(value: InnerValue, array: Array) -> None:
            if value.name in store:
                told = difference(store.take(value.name), array, settings.tolerance)
                compared.append(ComparedValue(entry, f"{value.op} {value.type}", value.where, told))

        _stream_values(expected, entry, inputs, raw, ones, keep)
        _stream_values(found, entry, inputs, raw, others, check)
    yield from compared


def _stream_values(
    module: Module,
    entry: str,
    inputs: Sequence[Array],
    raw: Mapping[str, Array],
    values: Sequence[InnerValue],
    sink: Callable[[InnerValue, Array], None],
) -> None:
    """Hands over the values inside, by the reference semantics."""
    own = len(module.functions[entry].outputs)

    def take(index: int, array: Array) -> None:
        if index >= own:
            sink(values[index - own], array)

    stream_results(with_values(module, entry), entry, inputs, raw, take)


def _inner_code(module: Module, entry: str, target: str, settings: Settings) -> Iterator[ComparedValue]:
    """Values of code that returns them, a group at a time, against those of the reference semantics."""
    values, names = inner_values(module, entry), [o.name for o in module.functions[entry].outputs]
    with tempfile.TemporaryDirectory(prefix="relaxir-compare-") as folder:
        store = ValueStore(folder)
        inputs, raw = settings.arguments(module, entry), settings.raw(module, entry)
        _stream_values(module, entry, inputs, raw, values, lambda value, array: store.write(value.name, array))
        for start in range(0, len(values), _GROUP):
            group = range(start, min(start + _GROUP, len(values)))
            exposed = with_values(module, entry, group)
            found = _coded(compile(exposed, target, cache=False), exposed, entry, settings)
            made = [o.name for o in exposed.functions[entry].outputs][len(names) :]
            for i, name in zip(group, made, strict=True):
                told = difference(store.take(values[i].name), found[name], settings.tolerance)
                yield ComparedValue(entry, f"{values[i].op} {values[i].type}", values[i].where, told)
