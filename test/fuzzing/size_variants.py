"""Every op with sizes that types say, name or leave open, called with right and wrong ones beside inaccessible memory.

A variant is an op of ``test/dialect`` as a function of its own: each dimension of each operand is a constant, a symbol, or
unknown; results say what inference says, more, or less; some operands are weights; of one in five nobody reads the results, and
of half of these they are in a loop. It is compiled and called with the sizes
that fit, and with some that do not: 0, 1, one less, one more, many. Compiled code has to give what ``evaluate`` gives, or both
have to refuse; it runs in a child process, in which touching memory that is not its own is a signal.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled, unreported
from relaxir.dialect import symbolic
from relaxir.dialect.bindings import ir
from relaxir.dialect.op import EffectOp, attrs_of, op_class
from relaxir.dialect.struct_info import TensorInfo, is_tensor
from relaxir.dialect.symbolic import Dim, Expr
from support.guard_pages import ChildError, Edge, guarded_copy, in_child
from support.op_samples import SIZES, Sample, load, op_of, random_operand, samples

__all__ = ["REFUSED", "Variant", "check", "sampled", "variant"]

Array = np.ndarray[Any, Any]
Shapes = tuple[tuple[int, ...], ...]

#: Ops that are no computation on arrays, each with where it is tested.
ELSEWHERE = {
    "get_param": "test/reference/test_lazy_io.py", "set_output": "test/reference/test_lazy_io.py",
    "keep": "test/end_to_end/test_unread_checks.py",
    "rank": "test/reference/test_collective.py", "all_gather": "test/reference/test_collective.py",
    "call_extern": "test/end_to_end/test_externs.py",
    "bind_argument": "test/reference/test_lazy_callbacks.py", "prim_value": "test/end_to_end/test_shape_values.py",
    "hint_on_device": "a hint, which realizing devices takes away",
}  # fmt: skip

#: What compiled code cannot have though ``evaluate`` does, by a part of the message; each is documented.
REFUSED = ("of static shape", "within one kind of device", "of several ranks on a GPU")

#: Rounded once from f32 sums in another order; by the largest element.
TOLERANCE = {"f64": 1e-11, "f32": 2e-5, "f16": 2e-3, "bf16": 2e-2, "f8E4M3FN": 0.13, "f8E5M2": 0.26}

#: Calls of one variant: with the sizes that fit, with those of another size that fit, and with some that may not.
_CALLS = 8
_MOST_ELEMENTS = 1 << 18


@dataclass(frozen=True)
class Variant:
    """One function of one op.

    Attributes:
        sample: where the op comes from.
        text: the module.
        dims: the operands' types, the weights last; the last one may be there to give symbols values.
        dtypes: their dtypes, as arrays of the right sizes.
        weights: how many of them are weights.
        calls: the sizes to call it with; the first ones fit.
        tolerance: of results, by the largest element.
    """

    sample: Sample
    text: str
    dims: tuple[tuple[Dim, ...], ...]
    arrays: tuple[Array, ...]
    weights: int
    calls: tuple[Shapes, ...]
    tolerance: float
    seed: int

    def arguments(self, shapes: Shapes) -> list[Array]:
        """Arrays of those shapes."""
        arrays = [_resized(a, s, self.seed) for a, s in zip(self.arrays, shapes, strict=True)]
        if '"relax.quantized_matmul"' in self.text:
            arrays[2] = _sums_of_groups(arrays[0], arrays[2])
        if 'grouped_matmul"' in self.text:  # ends ascend; of others results say nothing
            arrays[-1] = np.sort(np.clip(arrays[-1], 0, arrays[-3].shape[0]))
        return arrays


def sampled() -> list[Sample]:
    """The ops that variants are made of; more than one sample of most."""
    return [s for s, op in _ops() if op not in ELSEWHERE]


def _ops() -> Iterator[tuple[Sample, str]]:
    for family, group in itertools.groupby(samples(), lambda s: s.family):
        module = load(family)
        for sample in group:
            yield sample, op_of(module, sample.name).operation.name.removeprefix("relax.")


_SAMPLED: list[Sample] = []


def variant(seed: int) -> Variant:
    """The variant of a seed; consecutive seeds go through all ops."""
    if not _SAMPLED:
        _SAMPLED.extend(sampled())
    sample = _SAMPLED[seed % len(_SAMPLED)]
    rng = random.Random(seed)
    module = load(sample.family)
    op = op_of(module, sample.name)
    with module.context, ir.Location.unknown():
        for constants in itertools.count(1):  # some ops want more of them to verify
            found = _Maker(sample, op, rng, seed, min(0.9, constants / 8)).make()
            if found is not None:
                return found
    raise AssertionError(sample)


def check(seed: int) -> str | None:
    """Runs the variant of a seed; None, or why compiled code refuses what ``evaluate`` does not."""
    return check_variant(variant(seed))


def check_variant(made: Variant) -> str | None:
    """The same of a variant.

    Raises:
        AssertionError: compiled code and ``evaluate`` differ, or the process died; with the text, the sizes and what happened.
    """
    _warm()
    try:
        problem, reason = in_child(lambda: unreported(lambda: _outcome(made)))
    except ChildError as error:
        problem, reason = f"{error} in call {_last_call(made)}", None
    assert problem is None, f"{made.sample}: {problem}\n{made.text}"
    return reason


@functools.cache
def _warm() -> None:
    """Imports what compiling and calling need, once and not in each child."""
    module = rx.Module.parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    rx.compile(module, cache=False)(np.zeros(4, np.float32))


def _last_call(made: Variant) -> str:
    """The first call that a process does not survive, which is known after trying each in one of its own."""
    for shapes in made.calls:
        try:
            in_child(lambda shapes=shapes: _outcome(made, (shapes,)))
        except ChildError:
            return str(shapes)
    return "to compile"


# -- running ---------------------------------------------------------------------------------------------------------


def _outcome(made: Variant, calls: tuple[Shapes, ...] | None = None) -> tuple[str | None, str | None]:
    """What is wrong, and why the module was refused when that is right."""
    module = rx.Module.parse(made.text)
    refusal = executable = None
    try:
        executable = compiled(module)
    except rx.RelaxError as error:
        refusal = str(error)
    for i, shapes in enumerate(made.calls if calls is None else calls):
        arguments = made.arguments(shapes)
        want = _evaluated(module, made, arguments)
        if executable is None:
            if isinstance(want, str):
                continue
            documented = next((r for r in REFUSED if r in str(refusal)), None)
            return (
                (None, documented) if documented else (f"{shapes}: evaluate gives a result, compile refuses: {refusal}", None)
            )
        got = _called(executable, made, arguments, want, "end" if i % 2 else "start")
        if problem := _difference(want, got, made.tolerance):
            return f"{shapes}: {problem}", None
    return None, None


def _evaluated(module: rx.Module, made: Variant, arguments: list[Array]) -> list[Array] | str:
    split = len(arguments) - made.weights
    weights = {f"w{i}": a for i, a in enumerate(arguments) if i >= split}
    try:
        return list(rx.evaluate(module, "main", *arguments[:split], weights=weights))
    except rx.RelaxError as error:
        return str(error)


def _called(
    executable: rx.Executable, made: Variant, arguments: list[Array], want: list[Array] | str, edge: Edge
) -> list[Array] | str:  # fmt: skip
    split = len(arguments) - made.weights
    guarded = [guarded_copy(a, edge) for a in arguments]
    out = None if isinstance(want, str) else [guarded_copy(np.zeros_like(w), edge) for w in want]
    try:
        if made.weights:
            prepared = executable.prepare({f"w{i}": a for i, a in enumerate(guarded) if i >= split})
            for name in prepared:
                prepared[name] = guarded_copy(np.asarray(prepared[name]), edge)
            executable.bind(prepared)
        got = executable(*guarded[:split], out=out if out is None or len(out) != 1 else out[0])
    except rx.RelaxError as error:
        return str(error)
    return list(got) if isinstance(got, tuple) else [got]


def _difference(want: list[Array] | str, got: list[Array] | str, tolerance: float) -> str | None:
    if isinstance(want, str) and isinstance(got, str):
        return None
    if isinstance(want, str):
        return f"evaluate refuses, compiled code does not: {want}"
    if isinstance(got, str):
        return f"compiled code refuses, evaluate does not: {got}"
    return next((text for w, g in zip(want, got, strict=True) if (text := _unequal(w, g, tolerance))), None)


def _unequal(want: Array, got: Array, tolerance: float) -> str | None:
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"expected {want.dtype}{want.shape}, got {got.dtype}{got.shape}"
    a, b = (x.astype(np.float64) for x in (want, got))
    scale = max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        fine = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance * scale)
    return (
        None if fine.all() else f"{int((~fine).sum())} of {a.size} elements differ: expected {a[~fine][:3]}, got {b[~fine][:3]}"
    )


# -- making ----------------------------------------------------------------------------------------------------------


#: A function of which nobody reads what its op makes: it refuses the same calls.
_NOTHING = '%z = "relax.full"() {value = 1.0 : f64} : () -> tensor<f32>'
_LOOP = """%low = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  scf.for %i = %low to %two step %one {
    BODY
  }"""


def _unread(line: str, in_loop: bool) -> tuple[list[str], list[tuple[str, ir.Type]]]:
    """The lines of a function that returns something else than its op makes, and what it returns."""
    return [_NOTHING, _LOOP.replace("BODY", line) if in_loop else line], [("%z", ir.RankedTensorType.get([], ir.F32Type.get()))]


@dataclass
class _Maker:
    """Makes one variant of a sample's op, inside its context."""

    sample: Sample
    op: EffectOp
    rng: random.Random
    seed: int
    constant: float

    def make(self) -> Variant | None:
        infos = [TensorInfo.of(v) for v in self.op.operands if is_tensor(v)]
        arrays = [random_operand(self.op, i) for i in range(len(infos))]
        dims = [
            tuple(self._dim(d, s) for d, s in zip(info.shape, a.shape, strict=True))
            for info, a in zip(infos, arrays, strict=True)
        ]
        types = [info.with_(shape=d).type for info, d in zip(infos, dims, strict=True)]
        results = self._results([info.with_(shape=d) for info, d in zip(infos, dims, strict=True)])
        if results is None:
            return None
        weights = self._weights(dims)
        if needed := sorted(self._used(results) - self._given(dims)):
            byte = ir.IntegerType.get_signless(8)
            dims.insert(0, tuple(symbolic.symbol(n) for n in needed))
            arrays.insert(0, np.zeros([SIZES[n] for n in needed], np.int8))
            types.insert(0, TensorInfo(dims[0], byte).type)
        extra = len(dims) - len(infos)
        text = self._text(types, results, weights, extra)
        if text is None:
            return None
        calls = tuple(self._calls(dims, [a.shape for a in arrays], weights))
        tolerance = max(TOLERANCE.get(str(info.dtype), 0.0) for info in (*infos, *results))
        return Variant(self.sample, text, tuple(dims), tuple(arrays), weights, calls, 2 * tolerance, self.seed)

    def _dim(self, dim: Dim, size: int) -> Dim:
        if self.rng.random() < self.constant:
            return size
        kind = self.rng.choice(("symbol", "symbol", "unknown", "unknown", "unknown"))
        if kind == "unknown":
            return None
        return dim if isinstance(dim, Expr) else symbolic.symbol(f"s{size}")

    def _results(self, operands: list[TensorInfo]) -> list[TensorInfo] | None:
        """What the results' types say; None where the operands' do not verify."""
        cls = op_class(self.op)
        assert cls is not None
        written = [TensorInfo.of(r) for r in self.op.results]
        if cls.infer is None:
            return [info.with_(shape=[self._written(d) for d in info.shape]) for info in written]
        try:
            inferred = cls.infer(operands, attrs_of(self.op))
        except rx.RelaxError:
            return None
        found = inferred if isinstance(inferred, list) else [inferred]
        if [info.rank for info in found] != [info.rank for info in written]:  # squeezes dimensions that are 1 by chance
            return None
        return [
            want.with_(shape=[self._said(d, self._size(g)) for d, g in zip(want.shape, got.shape, strict=True)])
            for want, got in zip(found, written, strict=True)
        ]

    def _written(self, dim: Dim) -> Dim:
        return self._size(dim) if dim is not None and self.rng.random() < 0.4 else dim

    def _said(self, dim: Dim, size: int | None) -> Dim:
        """What inference says, less, or more."""
        kind = self.rng.random()
        if kind < 0.2:
            return None
        return size if dim is None and kind < 0.4 else dim

    def _size(self, dim: Dim) -> int | None:
        try:
            return None if dim is None else symbolic.evaluate(dim, SIZES)
        except rx.RelaxError:
            return None

    def _used(self, results: list[TensorInfo]) -> set[str]:
        """The symbols that results and attributes name."""
        cls = op_class(self.op)
        assert cls is not None
        named = [d for info in results for d in info.shape]
        for key, spec in cls.attrs.items():
            if spec.symbolic and key in self.op.attributes:
                named += spec.read(key, self.op.attributes[key])
        return {n for d in named if isinstance(d, Expr) for n in d.names if n in SIZES}

    def _given(self, dims: list[tuple[Dim, ...]]) -> set[str]:
        return {str(d) for shape in dims for d in shape if isinstance(d, Expr)}

    def _weights(self, dims: list[tuple[Dim, ...]]) -> int:
        """How many of the last operands are weights, whose sizes are constants."""
        constant = list(itertools.takewhile(lambda shape: all(isinstance(d, int) for d in shape), reversed(dims)))
        return self.rng.randint(0, len(constant)) if self.rng.random() < 0.5 else 0

    def _text(self, types: list[ir.Type], results: list[TensorInfo], weights: int, extra: int) -> str | None:
        """The module; results whose sizes no caller could know are summed up."""
        names = [f"%a{i}" for i in range(len(types))]
        split = len(types) - weights
        arguments = [
            f"{n}: {t}" + (f' {{relax.name = "w{i}"}}' if i >= split else "")
            for i, (n, t) in enumerate(zip(names, types, strict=True))
        ]
        attributes = ", ".join(f"{name} = {value}" for name, value in _attributes(self.op))
        made = [f"%r{i}" for i in range(len(results))]
        own = [info.type for info in results]
        lines = [
            f'{", ".join(made)} = "{self.op.operation.name}"({", ".join(names[extra:])}) {{{attributes}}} : '
            f"({', '.join(map(str, types[extra:]))}) -> ({', '.join(map(str, own))})"
        ]
        out = list(zip(made, own, strict=True))
        if (unread := random.Random(-1 - self.seed).random()) < 0.2:
            lines, out = _unread(lines[0], unread < 0.1)
        elif self.rng.random() < 0.3 or not self._known(results):
            out = [self._summed(name, info, lines) for name, info in zip(made, results, strict=True)]
        lines.append(f"return {', '.join(n for n, _ in out)} : {', '.join(str(t) for _, t in out)}")
        body = "\n  ".join(lines)
        marked = f" attributes {{relax.num_input = {split} : i64}}" if weights else ""
        returned = ", ".join(str(t) for _, t in out)
        text = f"func.func @main({', '.join(arguments)}) -> ({returned}){marked} {{\n  {body}\n}}\n"
        try:
            rx.Module.parse(text)
        except rx.RelaxError:
            return None
        return text

    def _known(self, results: list[TensorInfo]) -> bool:
        return all(d is not None for info in results for d in info.shape)

    def _summed(self, name: str, info: TensorInfo, lines: list[str]) -> tuple[str, ir.Type]:
        """The sum of all elements, of floats that of their squares, which do not cancel; of truth values the largest."""
        scalar = info.with_(shape=[])
        if not isinstance(info.dtype, ir.FloatType):
            op = "max" if str(info.dtype) == "i1" else "sum"
            lines.append(f'{name}_sum = "relax.{op}"({name}) : ({info.type}) -> {scalar.type}')
            return f"{name}_sum", scalar.type
        wide = ir.F64Type.get()
        whole, result = info.with_(dtype=wide).type, scalar.with_(dtype=wide).type
        lines.append(f'{name}_wide = "relax.astype"({name}) {{dtype = f64}} : ({info.type}) -> {whole}')
        lines.append(f'{name}_square = "relax.square"({name}_wide) : ({whole}) -> {whole}')
        lines.append(f'{name}_sum = "relax.sum"({name}_square) : ({whole}) -> {result}')
        return f"{name}_sum", result

    def _calls(self, dims: list[tuple[Dim, ...]], fitting: list[tuple[int, ...]], weights: int) -> Iterator[Shapes]:
        """The sizes that fit, those of another size wherever it is, and changes of one or two dimensions."""
        yield tuple(fitting)
        places = [(i, axis) for i, shape in enumerate(dims[: len(dims) - weights]) for axis, d in enumerate(shape)]
        places = [p for p in places if not isinstance(dims[p[0]][p[1]], int)]
        for _ in range(_CALLS if places else 0):
            shapes = [list(s) for s in fitting]
            for i, axis in self.rng.sample(places, min(len(places), self.rng.choice((1, 1, 1, 2)))):
                size = fitting[i][axis]
                new = self.rng.choice((0, 1, 1, max(size - 1, 0), size + 1, size * 2, 300))
                self._change(shapes, dims, (i, axis), new, fitting)
            if all(np.prod(s) <= _MOST_ELEMENTS for s in shapes):
                yield tuple(tuple(s) for s in shapes)

    def _change(
        self,
        shapes: list[list[int]],
        dims: list[tuple[Dim, ...]],
        place: tuple[int, int],
        new: int,
        fitting: list[tuple[int, ...]],
    ) -> None:
        """A new size for a dimension; for all of its symbol; or for all that have as many elements and no constant size."""
        chosen, size = dims[place[0]][place[1]], fitting[place[0]][place[1]]
        everywhere = self.rng.random() < 0.3
        for i, shape in enumerate(dims):
            for axis, dim in enumerate(shape):
                same = dim is not None and dim == chosen
                if (i, axis) == place or same or (everywhere and not isinstance(dim, int) and fitting[i][axis] == size):
                    shapes[i][axis] = new


def _attributes(op: EffectOp) -> Iterator[tuple[str, ir.Attribute]]:
    for item in op.attributes:
        name = item if isinstance(item, str) else item.name
        yield name, op.attributes[name]


def _sums_of_groups(x: Array, given: Array) -> Array:
    """The sums that the op asks for, of groups of the last dimension, where there are as many as are given."""
    if x.shape[:-1] != given.shape[:-1] or not given.shape[-1] or x.shape[-1] % given.shape[-1]:
        return given
    return x.reshape(*given.shape, -1).sum(-1, dtype=given.dtype)


def _resized(array: Array, shape: tuple[int, ...], seed: int) -> Array:
    """An array of the same kind of values in another shape."""
    if array.shape == shape:
        return array
    flat = array.reshape(-1)
    if not flat.size:
        return np.zeros(shape, array.dtype)
    chosen = np.random.default_rng(seed).integers(0, flat.size, shape)
    return np.ascontiguousarray(flat[chosen].reshape(shape))
