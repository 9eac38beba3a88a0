"""Random control flow for modules of shapes: branches, counted and conditional loops, inside of one another.

What regions hand on has one type and one shape, or is of unknown dimensions and as large as the region that ran has made it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaxir.dialect import ops
from relaxir.dialect.bindings import ir
from relaxir.dialect.struct_info import TensorInfo
from support.shape_values import ROUNDS, Emitter, Made

__all__ = ["CARRIED", "COUNTS", "FLOW"]

#: What loops carry is at most this.
CARRIED = 8
#: What an input called ``count`` is in each round.
COUNTS = (2, 0)

Flow = Callable[[Any, Emitter, Sequence[Made]], list[Made]]


def _scalar(made: Made) -> ir.Value:
    return ir.Operation.create("tensor.extract", [made.info.dtype], [made.value]).result


def _condition(em: Emitter, values: Sequence[Made]) -> tuple[ir.Value, list[bool]]:
    """An i1, and what it is in each round: a constant, an input, or whether a dimension is large."""
    flags = [v for v in values if v.dtype == "i1" and isinstance(v.value, ir.BlockArgument) and v.rank == 0]
    named = [(v, name) for v in flags if (name := _name_of(v)).startswith("flag")]
    if named and em.rng.random() < 0.6:
        made, name = em.rng.choice(named)
        return _scalar(made), [bool(int(name[4:]) >> r & 1) for r in range(ROUNDS)]
    if em.dims() and em.rng.random() < 0.5:
        (dim, sizes), limit = em.rng.choice(em.dims()), em.rng.randrange(6)
        size = ops.PrimValue.create(value=[dim], result_types=[ir.IndexType.get()]).results[0]
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4)
        kind = ir.IntegerType.get_signless(1)
        op = ir.Operation.create("arith.cmpi", [kind], [size, em.index(limit)], {"predicate": predicate})
        return op.result, [s > limit for s in sizes]
    truth = em.rng.random() < 0.5
    kind = ir.IntegerType.get_signless(1)
    return ir.Operation.create("arith.constant", [kind], attributes={"value": ir.IntegerAttr.get(kind, int(truth))}).result, [
        truth
    ] * ROUNDS


def _name_of(made: Made) -> str:
    """What an argument of an entry is called."""
    block = made.value.owner
    function = block.owner
    if "arg_attrs" not in function.attributes:
        return ""
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[made.value.arg_number])
    return ir.StringAttr(attributes["relax.name"]).value if "relax.name" in attributes else ""


def _count(em: Emitter, values: Sequence[Made]) -> tuple[ir.Value, list[int]]:
    """How often a loop runs: a constant, an input, or a dimension."""
    counts = [v for v in values if v.dtype == "i64" and isinstance(v.value, ir.BlockArgument) and v.rank == 0]
    named = [v for v in counts if _name_of(v) == "count"]
    if named and em.rng.random() < 0.6:
        return ir.Operation.create("arith.index_cast", [ir.IndexType.get()], [_scalar(named[0])]).result, list(COUNTS)
    if em.dims() and em.rng.random() < 0.3:
        dim, sizes = em.rng.choice([d for d in em.dims()])
        if max(sizes) < 6:
            return ops.PrimValue.create(value=[dim], result_types=[ir.IndexType.get()]).results[0], list(sizes)
    count = em.rng.randrange(3)
    return em.index(count), [count] * ROUNDS


def _steps(writer: Any, em: Emitter, values: Sequence[Made]) -> list[Made]:
    """All values of a region after some steps."""
    inner = list(values)
    for _ in range(em.rng.randrange(4)):
        inner += writer.step(em, inner)
    return inner


def _unknown(made: Made) -> TensorInfo:
    return made.info.with_(shape=[None] * made.rank)


def _branch(writer: Any, em: Emitter, values: Sequence[Made]) -> list[Made]:
    """Both branches hand on values of one type, or of unknown dimensions."""
    if not values:
        return []
    flag, truth = _condition(em, values)
    like = [em.rng.choice(values) for _ in range(em.rng.choice((1, 1, 2)))]
    varies = [em.rng.random() < 0.4 for _ in like]
    types = [(_unknown(v) if vary else v.info).type for v, vary in zip(like, varies, strict=True)]
    op = ir.Operation.create("scf.if", types, [flag], regions=2)
    made = list[list[Made]]()
    for region in op.regions:
        symbols = dict(em.symbols)
        with ir.InsertionPoint(region.blocks.append()):
            inner = _steps(writer, em, values)
            handed = [_like(em, inner, v, vary) for v, vary in zip(like, varies, strict=True)]
            ir.Operation.create("scf.yield", [], [v.value for v in handed])
        made.append(handed)
        em.symbols = symbols
    return [_joined(r, truth, a, b) for r, a, b in zip(op.results, *made, strict=True)]


def _like(em: Emitter, values: Sequence[Made], like: Made, varies: bool) -> Made:
    if varies:
        found = em.rng.choice([v for v in values[::-1] if v.dtype == like.dtype and v.rank == like.rank][:4])
        return em.cast(found, _unknown(like))
    return em.rng.choice([v for v in values[::-1] if v.known() == like.known()][:3])


def _joined(result: ir.Value, truth: Sequence[bool], a: Made, b: Made) -> Made:
    sizes = tuple(a.sizes[r] if truth[r] else b.sizes[r] for r in range(ROUNDS))
    return Made(result, sizes, max(a.bound, b.bound), max(a.error, b.error))


def _carried(em: Emitter, values: Sequence[Made]) -> list[Made]:
    found = [v for v in values if not v.error]
    return [_small(em, em.rng.choice(found)) for _ in range(em.rng.choice((1, 1, 2)))] if found else []


def _small(em: Emitter, made: Made) -> Made:
    if made.bound <= CARRIED:
        return made
    low = 0 if made.dtype.startswith("u") else -CARRIED
    return Made(ops.Clip.create(made.value, min=low, max=CARRIED).results[0], made.sizes, CARRIED)


def _inside(block: ir.Block, start: Sequence[Made], first: int) -> list[Made]:
    bounds = [1 if v.dtype == "i1" else CARRIED for v in start]
    arguments = list(block.arguments)[first:]
    return [Made(a, v.sizes, b) for a, v, b in zip(arguments, start, bounds, strict=True)]


def _next(em: Emitter, values: Sequence[Made], arguments: Sequence[Made]) -> list[ir.Value]:
    """What a region hands on: small, exact, of the types of its arguments."""
    found = [_like(em, [v for v in values if not v.error], a, varies=False) for a in arguments]
    return [_small(em, v).value for v in found]


def _block(region: ir.Region, types: Sequence[ir.Type]) -> ir.Block:
    return region.blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))


def _loop(writer: Any, em: Emitter, values: Sequence[Made]) -> list[Made]:
    start = _carried(em, values)
    if not start:
        return []
    high, _ = _count(em, values)
    types = [v.value.type for v in start]
    op = ir.Operation.create("scf.for", types, [em.index(0), high, em.index(1), *(v.value for v in start)], regions=1)
    block = _block(op.regions[0], [ir.IndexType.get(), *types])
    symbols, inner = dict(em.symbols), _inside(block, start, 1)
    with ir.InsertionPoint(block):
        made = _steps(writer, em, [*values, *inner])
        ir.Operation.create("scf.yield", [], _next(em, made, inner))
    em.symbols = symbols
    return [Made(r, v.sizes, v.bound) for r, v in zip(op.results, inner, strict=True)]


def _while(writer: Any, em: Emitter, values: Sequence[Made]) -> list[Made]:
    """Counts an index down to zero; either region may compute."""
    start = _carried(em, values)
    if not start:
        return []
    high, _ = _count(em, values)
    index, kind = ir.IndexType.get(), ir.IntegerType.get_signless(1)
    types = [index, *(v.value.type for v in start)]
    zero, step = em.index(0), em.index(1)
    op = ir.Operation.create("scf.while", types, [high, *(v.value for v in start)], regions=2)
    before, after = (_block(region, types) for region in op.regions)
    symbols, inner = dict(em.symbols), _inside(before, start, 1)
    with ir.InsertionPoint(before):
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4)
        go = ir.Operation.create("arith.cmpi", [kind], [before.arguments[0], zero], {"predicate": predicate}).result
        made = _steps(writer, em, [*values, *inner])
        ir.Operation.create("scf.condition", [], [go, before.arguments[0], *_next(em, made, inner)])
    em.symbols, inner = dict(symbols), _inside(after, start, 1)
    with ir.InsertionPoint(after):
        left = ir.Operation.create("arith.subi", [index], [after.arguments[0], step]).result
        made = _steps(writer, em, [*values, *inner])
        ir.Operation.create("scf.yield", [], [left, *_next(em, made, inner)])
    em.symbols = symbols
    return [Made(r, v.sizes, v.bound) for r, v in zip(list(op.results)[1:], inner, strict=True)]


def _growing(writer: Any, em: Emitter, values: Sequence[Made]) -> list[Made]:
    """A loop that carries a tensor of unknown dimensions, which each round makes longer, as a cache of no fixed size."""
    found = [v for v in values if not v.error and 1 <= v.rank <= 3 and v.dtype != "i1"]
    if not found:
        return []
    part = _small(em, em.rng.choice(found))
    start = em.cast(part, _unknown(part))
    high, counts = _count(em, values)
    type_ = start.value.type
    op = ir.Operation.create("scf.for", [type_], [em.index(0), high, em.index(1), start.value], regions=1)
    block = _block(op.regions[0], [ir.IndexType.get(), type_])
    with ir.InsertionPoint(block):
        kind = getattr(
            ops, em.rng.choice(("Relu", "Sign", "StopLiftParams") if "f" in part.dtype else ("Abs", "StopLiftParams"))
        )
        longer = ops.Concat.create(kind.create(block.arguments[1]), part.value, axis=0, result_types=[type_])
        ir.Operation.create("scf.yield", [], [longer.results[0]])
    sizes = tuple(((c + 1) * s[0], *s[1:]) for c, s in zip(counts, part.sizes, strict=True))
    return [Made(op.results[0], sizes, CARRIED)]


FLOW: tuple[Flow, ...] = (_branch, _branch, _loop, _while, _growing)
