"""Appends operations to a function: constants once per function, loops and conditions from Python callbacks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import gcd

from ....dialect.bindings import ir
from .operation_builder import OperationBuilder

__all__ = ["Emitter", "LoopWork"]

# Element operations from which on a team of threads pays: starting one takes 1 to 2 us (two cores of Zen 5, LLVM's
# OpenMP), in which one core does some ten thousand.
ENOUGH_WORK = 1 << 15

# Assembler without a text, whose result is where its operand is.
_SAME_REGISTER = {"asm_string": "", "constraints": "=r,0"}

LoopBody = Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]]


@dataclass(frozen=True)
class LoopWork:
    """How many element operations a loop does: ``amount`` times the product of ``sizes``, which are index values."""

    amount: int
    sizes: tuple[ir.Value, ...] = ()


class Emitter(OperationBuilder):
    """Builds arithmetic of indices, operations on vectors, loops and conditions."""

    # -- index arithmetic ------------------------------------------------------------------------------------------

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """A sum; of indices, its constant part is added last: in an address it costs no instruction then."""
        if a.type != self.index:
            return self.op("arith.addi", [a, b], a.type)
        (x, more), (y, further) = self.split(a), self.split(b)
        if x is not None and y is not None:
            x = self._once("arith.addi", x, y)
        return self._plus(y if x is None else x, more + further)

    def as_index(self, value: int | ir.Value) -> ir.Value:
        """An index that is known, or not."""
        return self.number(value) if isinstance(value, int) else value

    def sub(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """A difference, like :meth:`add`."""
        if a.type != self.index:
            return self.op("arith.subi", [a, b], a.type)
        (x, more), (y, less) = self.split(a), self.split(b)
        if y is not None:
            x = None if x is not None and x == y else self._once("arith.subi", self.number(0) if x is None else x, y)
        return self._plus(x, more - less)

    def mul(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """A product, like :meth:`add`."""
        if a.type != self.index:
            return self.op("arith.muli", [a, b], a.type)
        (x, more), (y, factor) = self.split(a), self.split(b)
        if x is None:
            (x, more), (y, factor) = (y, factor), (x, more)
        if y is not None:
            return self._once("arith.muli", a, b)
        if x is None or not factor:
            return self.number(more * factor)
        return self._plus(x if factor == 1 else self._scaled(x, factor), more * factor)

    def _scaled(self, value: ir.Value, factor: int) -> ir.Value:
        product = self._once("arith.muli", value, self.number(factor))
        self._divisors[product] = abs(factor) * self.divisor(value)
        return product

    def split(self, value: ir.Value) -> tuple[ir.Value | None, int]:
        """An index as what is known at run time only, and a constant."""
        return self._sums.get(value, (value, 0))

    def divisor(self, value: ir.Value) -> int:
        """What is known to divide an index: of a loop's variable its step, if it begins at a multiple; a factor."""
        return self._divisors.get(value, 1)

    def select(self, condition: ir.Value, then: ir.Value, otherwise: ir.Value) -> ir.Value:
        """One of two indices: what divides both divides it."""
        value = self.op("arith.select", [condition, then, otherwise], self.index)
        found = 0
        for base, constant in (self.split(then), self.split(otherwise)):
            found = gcd(found, constant if base is None else gcd(self.divisor(base), constant))
        self._divisors[value] = max(1, found)
        return value

    def opaque(self, value: ir.Value) -> ir.Value:
        """The same index, in a register, of which LLVM does not know how it was computed; once per block."""
        x, constant = self.split(value)
        if x is None:
            return value
        key = "llvm.inline_asm", x, x, self.block
        if key not in self._known:
            attributes = {name: ir.StringAttr.get(text, self.context) for name, text in _SAME_REGISTER.items()}
            word = self.op("builtin.unrealized_conversion_cast", [x], self._i64)
            word = self.op("llvm.inline_asm", [word], self._i64, attributes)
            self._known[key] = self.op("builtin.unrealized_conversion_cast", [word], self.index)
        return self._plus(self._known[key], constant)

    def _plus(self, value: ir.Value | None, constant: int) -> ir.Value:
        if value is None:
            return self.number(constant)
        if not constant:
            return value
        total = self._once("arith.addi", value, self.number(constant))
        self._sums[total] = value, constant
        return total

    def _once(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """An operation on indices, once per block."""
        key = name, a, b, self.block
        if key not in self._known:
            self._known[key] = self.op(name, [a, b], self.index)
        return self._known[key]

    def broadcast(self, value: ir.Value, width: int) -> ir.Value:
        """The value in every lane; as is for width 0."""
        if not width or isinstance(value.type, ir.VectorType):
            return value
        return self.op("vector.broadcast", [value], self.vector(width, value.type))

    def lane_mask(self, width: int, active: ir.Value) -> ir.Value:
        """A mask of the first ``active`` lanes."""
        return self.op("vector.create_mask", [active], self.vector(width, self.i1))

    def reduce(self, kind: str, vector: ir.Value) -> ir.Value:
        """All lanes combined into a scalar, in any order."""
        element = ir.VectorType(vector.type).element_type
        flags = "none" if isinstance(element, ir.IntegerType) else "reassoc"
        attributes = {
            "kind": self._parsed(f"#vector.kind<{kind}>"),
            "fastmath": self._parsed(f"#arith.fastmath<{flags}>"),
        }
        return self.op("vector.reduction", [vector], element, attributes)

    def _parsed(self, text: str) -> ir.Attribute:
        if text not in self._attributes:
            self._attributes[text] = ir.Attribute.parse(text, self.context)
        return self._attributes[text]

    def invert(self, mask: ir.Value) -> ir.Value:
        """A mask of the other lanes."""
        return self.op("arith.xori", [mask, self.constant(True, mask.type)], mask.type)

    def transpose(self, rows: Sequence[ir.Value]) -> list[ir.Value]:
        """A square matrix of vectors transposed, by exchanging halves, quarters... of pairs of rows."""
        result, width = list(rows), len(rows)
        distance = 1
        while distance < width:
            low = [i if not i & distance else i - distance + width for i in range(width)]
            high = [i + distance if not i & distance else i + width for i in range(width)]
            for i in (i for i in range(width) if not i & distance):
                pair = result[i], result[i + distance]
                result[i], result[i + distance] = self._shuffle(pair, low), self._shuffle(pair, high)
            distance *= 2
        return result

    def lanes(self, vector: ir.Value, first: int, count: int) -> ir.Value:
        """Some neighbouring lanes."""
        if (first, count) == (0, ir.VectorType(vector.type).shape[0]):
            return vector
        return self._shuffle((vector, vector), range(first, first + count))

    def backwards(self, vector: ir.Value) -> ir.Value:
        """Its lanes from the last to the first."""
        return self._shuffle((vector, vector), range(ir.VectorType(vector.type).shape[0] - 1, -1, -1))

    def first_lane(self, vector: ir.Value) -> ir.Value:
        """Its first element."""
        return self.lane(vector, 0)

    def lane(self, vector: ir.Value, number: int) -> ir.Value:
        """One of its elements."""
        position = {"static_position": ir.DenseI64ArrayAttr.get([number], self.context)}
        return self.op("vector.extract", [vector], ir.VectorType(vector.type).element_type, position)

    def interleaved(self, vectors: Sequence[ir.Value]) -> list[ir.Value]:
        """Of each two vectors what has the lanes of both in turn, as two vectors."""
        width = ir.VectorType(vectors[0].type).shape[0]
        lanes = [i // 2 + i % 2 * width for i in range(2 * width)]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        return [self._shuffle(pair, part) for pair in pairs for part in (lanes[:width], lanes[width:])]

    def separated(self, vectors: Sequence[ir.Value]) -> list[ir.Value]:
        """The inverse of :meth:`interleaved`."""
        width = ir.VectorType(vectors[0].type).shape[0]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        return [self._shuffle(pair, range(first, 2 * width, 2)) for pair in pairs for first in (0, 1)]

    def joined(self, parts: Sequence[ir.Value]) -> ir.Value:
        """One vector of the lanes of a power of two of vectors."""
        joined = list(parts)
        while len(joined) > 1:
            count = 2 * ir.VectorType(joined[0].type).shape[0]
            joined = [self._shuffle((a, b), range(count)) for a, b in zip(joined[::2], joined[1::2], strict=True)]
        return joined[0]

    def _shuffle(self, pair: tuple[ir.Value, ir.Value], lanes: Sequence[int]) -> ir.Value:
        mask = ir.DenseI64ArrayAttr.get(list(lanes), self.context)
        kind = self.vector(len(lanes), ir.VectorType(pair[0].type).element_type)
        return self.op("vector.shuffle", pair, kind, {"mask": mask})

    # -- control flow ----------------------------------------------------------------------------------------------

    def loop(
        self, lower: ir.Value, upper: ir.Value, step: int, body: LoopBody, carried: Sequence[ir.Value] = ()
    ) -> list[ir.Value]:
        """``for i = lower to upper step step``; the body gets ``i`` and the carried values and returns the next ones."""
        types = [v.type for v in carried]
        op = self._create("scf.for", [lower, upper, self.number(step), *carried], types, None, 1, self._point)
        block = op.regions[0].blocks.append(self.index, *types, arg_locs=[self.location] * (1 + len(types)))
        arguments = list(block.arguments)
        self._note_step(arguments[0], lower, step)
        self._fill(block, lambda: body(arguments[0], arguments[1:]))
        return list(op.results)

    def shared(self, lower: ir.Value, upper: ir.Value, step: int, body: Callable[[ir.Value], None], work: LoopWork) -> None:
        """A loop whose iterations are independent: threads share it when there is enough work, and no loop around it is."""
        if lower == upper:
            return
        if self._in_team and self._threads:
            self._shared_by_team(lower, upper, step, body)
            return
        enough = self._threads and self._enough(work)
        if enough is False:
            self.each(lower, upper, step, body)
            return
        self._with_team(enough, lambda: self._shared_by_team(lower, upper, step, body))

    def team(self, body: Callable[[], None], work: LoopWork) -> None:
        """Code that each of several threads goes through when there is enough work, but for the loops in it that they share.

        Threads begin once for all of these loops, and none waits behind one: what loops write may not be read in later ones.
        """
        enough = self._threads and self._enough(work)
        if enough is False:
            body()
            return
        self._with_team(enough, body)

    def once(self, body: Callable[[], None]) -> None:
        """Code that one thread of a team goes through."""
        if not (self._in_team and self._threads):
            body()
            return
        self._shared_by_team(self.number(0), self.number(1), 1, lambda _: body())

    def _with_team(self, enough: bool | ir.Value, body: Callable[[], None]) -> None:
        conditions = [] if isinstance(enough, bool) else [enough]
        segments = ir.DenseI32ArrayAttr.get([0, 0, len(conditions), 0, 0, 0], self.context)
        team = self._create("omp.parallel", conditions, [], {"operandSegmentSizes": segments}, 1, self._point)
        block = team.regions[0].blocks.append()
        # Each thread has memory of its own, once for all loops: it is in front of these, where this constant is.
        zero = {"value": ir.IntegerAttr.get(self.index, 0)}
        first = self._create("arith.constant", [], [self.index], zero, 0, ir.InsertionPoint(block))
        self._in_team, self._stack_point = True, ir.InsertionPoint(first)
        self._fill(block, _effect(body), "omp.terminator")
        self._in_team, self._stack_point = False, self._constant_point

    def _shared_by_team(self, lower: ir.Value, upper: ir.Value, step: int, body: Callable[[ir.Value], None]) -> None:
        alone = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0] * 7, self.context),
            "nowait": ir.UnitAttr.get(self.context),
        }
        wrapper = self._create("omp.wsloop", [], [], alone, 1, self._point)
        at = ir.InsertionPoint(wrapper.regions[0].blocks.append())
        nest = self._create("omp.loop_nest", [lower, upper, self.number(step)], [], None, 1, at)
        block = nest.regions[0].blocks.append(self.index, arg_locs=[self.location])
        self._note_step(block.arguments[0], lower, step)
        self._threads = False
        self._fill(block, _effect(lambda: body(block.arguments[0])), "omp.yield")
        self._threads = True

    def _note_step(self, variable: ir.Value, lower: ir.Value, step: int) -> None:
        """Notes what divides the variable of a loop."""
        first, begin = self.split(lower)
        self._divisors[variable] = gcd(step, begin, 0 if first is None else self.divisor(first))

    def _enough(self, work: LoopWork) -> bool | ir.Value:
        """Whether work is worth a team of threads; a condition when sizes decide."""
        if not work.sizes:
            return work.amount >= ENOUGH_WORK
        total = work.sizes[0]
        for size in work.sizes[1:]:
            total = self.mul(total, size)
        return self.compare("sge", total, self.number(-(-ENOUGH_WORK // max(1, work.amount))))

    def each(self, lower: ir.Value, upper: ir.Value, step: int, body: Callable[[ir.Value], None]) -> None:
        """A loop that carries nothing; none when the bounds are known to be equal."""
        if lower != upper:
            self.loop(lower, upper, step, lambda i, _: _effect(lambda: body(i))())

    def when(
        self,
        condition: ir.Value,
        then: Callable[[], Sequence[ir.Value]],
        otherwise: Callable[[], Sequence[ir.Value]] | None = None,
        types: Sequence[ir.Type] = (),
    ) -> list[ir.Value]:
        """``if condition``; both branches return values of ``types``, without any there is no else branch."""
        op = self._create("scf.if", [condition], types, None, 2, self._point)
        self._fill(op.regions[0].blocks.append(), then)
        if otherwise is not None and types:
            self._fill(op.regions[1].blocks.append(), otherwise)
        return list(op.results)

    def only_when(self, condition: ir.Value, then: Callable[[], object]) -> None:
        """``if condition`` without values."""
        self.when(condition, _effect(then))

    @property
    def in_loop(self) -> bool:
        """Whether code is built directly in a loop of this thread."""
        return self.block.owner.operation.name == "scf.for"

    def is_outside_of_loop(self, value: ir.Value) -> bool:
        """Whether an index, which is known where code is built, is so in front of the loop as well, but for a constant."""
        base, _ = self.split(value)
        if base is None:
            return True
        return (base.owner if isinstance(base.owner, ir.Block) else base.owner.operation.block) != self.block

    @contextmanager
    def before_loop(self) -> Generator[None]:
        """Builds in front of the loop that code is built in."""
        saved, self._point = self._point, ir.InsertionPoint(self.block.owner.operation)
        try:
            yield
        finally:
            self._point = saved

    def _fill(self, block: ir.Block, body: Callable[[], Sequence[ir.Value]], end: str = "scf.yield") -> None:
        saved = self._point
        self._point = ir.InsertionPoint(block)
        results = body()
        self._create(end, list(results), [], None, 0, self._point)
        self._point = saved


def _effect(body: Callable[[], object]) -> Callable[[], Sequence[ir.Value]]:
    """The body as one that gives no values."""

    def built() -> Sequence[ir.Value]:
        body()
        return ()

    return built
