"""Appends operations to a function: constants once per function, loops and conditions from Python callbacks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import gcd

import numpy as np

from ....dialect.bindings import ir

__all__ = ["Emitter", "LoopWork"]

# Element operations from which on a team of threads pays: starting one takes 1 to 2 us (two cores of Zen 5, LLVM's
# OpenMP), in which one core does some ten thousand.
ENOUGH_WORK = 1 << 15

_FLOAT_PREDICATES = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "uno": 14}
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

# Assembler without a text, whose result is where its operand is.
_SAME_REGISTER = {"asm_string": "", "constraints": "=r,0"}

LoopBody = Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]]


@dataclass(frozen=True)
class LoopWork:
    """How many element operations a loop does: ``amount`` times the product of ``sizes``, which are index values."""

    amount: int
    sizes: tuple[ir.Value, ...] = ()


class Emitter:
    """Builds scf, vector, arith and memref operations with the location of the operation being lowered.

    Operations are built with ``Operation.create`` (1-2 us); the generated builders cost 3 to 150 us each.
    """

    def __init__(self, entry: ir.Block, threads: bool = False):
        """Starts without a place to build at.

        Args:
            entry: the function's entry block, where constants go.
            threads: whether :meth:`shared` loops may be shared.
        """
        self.context = entry.owner.context
        self.location = entry.owner.location
        with self.context:
            self.index = ir.IndexType.get()
            self.i1 = ir.IntegerType.get_signless(1)
            self.i32 = ir.IntegerType.get_signless(32)
            self.f32 = ir.F32Type.get()
            self._i64 = ir.IntegerType.get_signless(64)
        self._attributes: dict[str, ir.Attribute] = {}
        self._constants: dict[tuple[object, ir.Type], ir.Value] = {}
        self._sums: dict[ir.Value, tuple[ir.Value | None, int]] = {}
        self._divisors: dict[ir.Value, int] = {}
        self._known: dict[tuple[str, ir.Value, ir.Value, ir.Block], ir.Value] = {}
        zero = ir.IntegerAttr.get(self.index, 0)
        # Every later constant goes in front of this one: it is never erased, unlike the operations being lowered.
        at = ir.InsertionPoint.at_block_begin(entry)
        first = self._create("arith.constant", [], [self.index], {"value": zero}, 0, at)
        self._constant_point = self._stack_point = ir.InsertionPoint(first)
        self._constants[(0, self.index)] = first.results[0]
        self._point: ir.InsertionPoint = at
        self._threads = threads

    @property
    def block(self) -> ir.Block:
        """Where operations are appended now."""
        return self._point.block

    @property
    def point(self) -> ir.InsertionPoint:
        """Where operations are built now."""
        return self._point

    # -- operations ------------------------------------------------------------------------------------------------

    def op(
        self,
        name: str,
        operands: Sequence[ir.Value],
        result: ir.Type,
        attributes: Mapping[str, ir.Attribute] | None = None,
    ) -> ir.Value:
        """An operation with one result."""
        return self._create(name, operands, [result], attributes, 0, self._point).results[0]

    def effect(self, name: str, operands: Sequence[ir.Value], attributes: Mapping[str, ir.Attribute] | None = None) -> None:
        """An operation without results."""
        self._create(name, operands, [], attributes, 0, self._point)

    def several(self, name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type]) -> list[ir.Value]:
        """An operation with several results."""
        return list(self._create(name, operands, results, None, 0, self._point).results)

    def nested(
        self,
        name: str,
        operands: Sequence[ir.Value],
        results: Sequence[ir.Type],
        attributes: Mapping[str, ir.Attribute] | None,
        regions: int,
    ) -> ir.Operation:
        """An operation with regions, whose blocks are still to be made (:meth:`inside`)."""
        return self._create(name, operands, results, attributes, regions, self._point)

    def clone(self, operation: ir.Operation, operands: Sequence[ir.Value], result: ir.Type) -> ir.Value:
        """An operation of the same name and attributes on other operands."""
        attributes = {name: operation.attributes[name] for name in operation.attributes}
        return self._create(operation.name, operands, [result], attributes, 0, self._point).results[0]

    def intrinsic(self, name: str, operands: Sequence[ir.Value], result: ir.Type) -> ir.Value:
        """A call of one of LLVM's intrinsics for a target."""
        attributes = {
            "intrin": ir.StringAttr.get(name, self.context),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([], self.context),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0], self.context),
        }
        return self.op("llvm.call_intrinsic", operands, result, attributes)

    def compare(self, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """``arith.cmpi`` of two scalars or vectors of integers."""
        number = _PREDICATES.index(predicate)
        kind = a.type
        result = self.vector(kind.shape[0], self.i1) if isinstance(kind, ir.VectorType) else self.i1
        return self.op("arith.cmpi", [a, b], result, {"predicate": ir.IntegerAttr.get(self._i64, number)})

    def float_predicate(self, name: str) -> ir.Attribute:
        """The predicate attribute of an ``arith.cmpf``."""
        return ir.IntegerAttr.get(self._i64, _FLOAT_PREDICATES[name])

    def flat_view(self, dynamic_sizes: int, size: int | None) -> dict[str, ir.Attribute]:
        """The attributes of a ``memref.reinterpret_cast`` to one dimension at offset 0."""
        sizes = [ir.ShapedType.get_dynamic_size() if size is None else size]
        static = {"static_offsets": [0], "static_sizes": sizes, "static_strides": [1]}
        attributes: dict[str, ir.Attribute] = {
            name: ir.DenseI64ArrayAttr.get(values, self.context) for name, values in static.items()
        }
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, dynamic_sizes, 0], self.context)
        return attributes

    def _create(
        self,
        name: str,
        operands: Sequence[ir.Value],
        results: Sequence[ir.Type],
        attributes: Mapping[str, ir.Attribute] | None,
        regions: int,
        point: ir.InsertionPoint,
    ) -> ir.Operation:
        return ir.Operation.create(
            name, results=results, operands=operands, attributes=attributes, regions=regions, loc=self.location, ip=point
        )

    @contextmanager
    def before(self, operation: ir.Operation) -> Generator[None]:
        """Builds in front of an operation, with its location; of one in a loop that threads share, for one thread."""
        saved = self._point, self.location, self._threads, self._stack_point
        self._point, self.location = ir.InsertionPoint(operation), operation.location
        self._known.clear()
        team = _enclosing(operation, "omp.wsloop")
        if team is not None:
            self._threads, self._stack_point = False, ir.InsertionPoint(team)
        try:
            yield
        finally:
            self._point, self.location, self._threads, self._stack_point = saved

    @contextmanager
    def inside(self, block: ir.Block) -> Generator[None]:
        """Builds at the end of a block."""
        saved, self._point = self._point, ir.InsertionPoint(block)
        try:
            yield
        finally:
            self._point = saved

    # -- constants and types ---------------------------------------------------------------------------------------

    def vector(self, width: int, element: ir.Type) -> ir.Type:
        return ir.VectorType.get([width], element, loc=self.location)

    def integer(self, bits: int) -> ir.Type:
        return ir.IntegerType.get_signless(bits, self.context)

    def constant(self, value: float | bool, kind: ir.Type) -> ir.Value:
        """A scalar, or a vector with that value in every lane."""
        if kind == self.index:
            return self.number(int(value))
        return self._constant((repr(value), kind), kind, lambda: _attribute(value, kind))

    def constant_attribute(self, attribute: ir.Attribute, kind: ir.Type) -> ir.Value:
        """A constant with the value of an ``arith.constant``."""
        return self._constant((attribute, kind), kind, lambda: attribute)

    def lane_constant(self, values: Sequence[int], element: ir.Type) -> ir.Value:
        """A vector of integers, one per lane."""
        kind = self.vector(len(values), element)
        width = np.int64 if element == self.index else np.dtype(f"int{ir.IntegerType(element).width}")
        return self._constant(
            (tuple(values), kind), kind, lambda: ir.DenseElementsAttr.get(np.array(values, np.int64).astype(width), type=kind)
        )

    def _constant(self, key: tuple[object, ir.Type], kind: ir.Type, attribute: Callable[[], ir.Attribute]) -> ir.Value:
        if key not in self._constants:
            op = self._create("arith.constant", [], [kind], {"value": attribute()}, 0, self._constant_point)
            self._constants[key] = op.results[0]
        return self._constants[key]

    def number(self, value: int) -> ir.Value:
        """An index constant."""
        constant = self._constant((value, self.index), self.index, lambda: ir.IntegerAttr.get(self.index, value))
        self._sums[constant] = None, value
        return constant

    def scratch(self, count: int, element: ir.Type) -> ir.Value:
        """Elements on the stack, for as long as the function runs; of each thread's own in a shared loop."""
        return self.on_stack(ir.MemRefType.get([count], element, loc=self.location))

    def on_stack(self, kind: ir.Type) -> ir.Value:
        """A buffer of constant size, like :meth:`scratch`."""
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, self.context), 64)
        segments = ir.DenseI32ArrayAttr.get([0, 0], self.context)
        attributes = {"alignment": alignment, "operandSegmentSizes": segments}
        return self._create("memref.alloca", [], [kind], attributes, 0, self._stack_point).results[0]

    def prefetch(self, memory: ir.Value, at: ir.Value, locality: int = 3) -> None:
        """Asks for the line of memory with that element, to be read soon; the element need not exist.

        ``locality`` is LLVM's: 3 for the first level of caches, 2 for the second.
        """
        attributes = {
            "isWrite": ir.BoolAttr.get(False, self.context),
            "localityHint": ir.IntegerAttr.get(self.i32, locality),
            "isDataCache": ir.BoolAttr.get(True, self.context),
        }
        self.effect("memref.prefetch", [memory, at], attributes)

    # -- index arithmetic ------------------------------------------------------------------------------------------

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """A sum; of indices, its constant part is added last: in an address it costs no instruction then."""
        if a.type != self.index:
            return self.op("arith.addi", [a, b], a.type)
        (x, more), (y, further) = self.split(a), self.split(b)
        if x is not None and y is not None:
            x = self._once("arith.addi", x, y)
        return self._plus(y if x is None else x, more + further)

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
        return self._plus(x if factor == 1 else self._once("arith.muli", x, self.number(factor)), more * factor)

    def split(self, value: ir.Value) -> tuple[ir.Value | None, int]:
        """An index as what is known at run time only, and a constant."""
        return self._sums.get(value, (value, 0))

    def divisor(self, value: ir.Value) -> int:
        """What is known to divide an index: of a loop's variable its step, if the loop begins at a multiple of it."""
        return self._divisors.get(value, 1)

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
        enough = self._threads and self._enough(work)
        if enough is False:
            self.each(lower, upper, step, body)
            return
        conditions = [] if enough is True else [enough]
        segments = ir.DenseI32ArrayAttr.get([0, 0, len(conditions), 0, 0, 0], self.context)
        team = self._create("omp.parallel", conditions, [], {"operandSegmentSizes": segments}, 1, self._point)
        outer = team.regions[0].blocks.append()
        # The team ends behind the loop: there is nothing between to wait for.
        alone = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0] * 7, self.context),
            "nowait": ir.UnitAttr.get(self.context),
        }
        wrapper = self._create("omp.wsloop", [], [], alone, 1, ir.InsertionPoint(outer))
        self._create("omp.terminator", [], [], None, 0, ir.InsertionPoint(outer))
        at = ir.InsertionPoint(wrapper.regions[0].blocks.append())
        nest = self._create("omp.loop_nest", [lower, upper, self.number(step)], [], None, 1, at)
        block = nest.regions[0].blocks.append(self.index, arg_locs=[self.location])
        self._note_step(block.arguments[0], lower, step)
        self._threads, self._stack_point = False, ir.InsertionPoint(wrapper)
        self._fill(block, _effect(lambda: body(block.arguments[0])), "omp.yield")
        self._threads, self._stack_point = True, self._constant_point

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


def _enclosing(operation: ir.Operation, name: str) -> ir.Operation | None:
    """The nearest operation of that name around one."""
    around = operation.parent
    while around is not None and around.operation.name != name:
        around = around.operation.parent
    return None if around is None else around.operation


def _attribute(value: float | bool, kind: ir.Type) -> ir.Attribute:
    if isinstance(kind, ir.VectorType):
        return ir.DenseElementsAttr.get_splat(kind, _attribute(value, kind.element_type))
    if isinstance(kind, (ir.IntegerType, ir.IndexType)):
        return ir.IntegerAttr.get(kind, int(value))
    return ir.FloatAttr.get(kind, float(value))
