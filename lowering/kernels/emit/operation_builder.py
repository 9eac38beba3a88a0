"""Builds operations where an emitter is, with the location of what is lowered; constants once per function."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from ....dialect.bindings import ir

__all__ = ["OperationBuilder"]

_FLOAT_PREDICATES = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "uno": 14}
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class OperationBuilder:
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
        self._vectors: dict[tuple[int, ir.Type], ir.Type] = {}
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
        self._threads, self._in_team = threads, False

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
        return self.op("llvm.call_intrinsic", operands, result, self._of_intrinsic(name, operands))

    def intrinsic_effect(
        self, name: str, operands: Sequence[ir.Value], attributes: Mapping[str, ir.Attribute] | None = None
    ) -> ir.Operation:
        """A call of one without a result."""
        every = self._of_intrinsic(name, operands) | dict(attributes or {})
        return self._create("llvm.call_intrinsic", operands, [], every, 0, self._point)

    def _of_intrinsic(self, name: str, operands: Sequence[ir.Value]) -> dict[str, ir.Attribute]:
        return {
            "intrin": ir.StringAttr.get(name, self.context),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([], self.context),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0], self.context),
        }

    def address(self, memory: ir.Value, bytes_: ir.Value | None = None) -> ir.Value:
        """Where a buffer begins, or so many bytes behind that, as a pointer of LLVM's."""
        place = self.op("memref.extract_aligned_pointer_as_index", [memory], self.index)
        if bytes_ is not None:
            place = self.op("arith.addi", [place, bytes_], self.index)
        word = self.op("arith.index_cast", [place], self._i64)
        return self.op("llvm.inttoptr", [word], ir.Type.parse("!llvm.ptr", self.context))

    def words_on_stack(self, values: Sequence[int]) -> ir.Value:
        """A pointer to constant words of 32 bits, 64 bytes or more, where :meth:`scratch` is."""
        memory, vector = self.scratch(len(values), self.i32), self.lane_constant(values, self.i32)
        saved, self._point = self._point, self._stack_point
        zero = self.op("arith.constant", [], self.index, {"value": ir.IntegerAttr.get(self.index, 0)})  # all others are behind
        self.effect("vector.store", [vector, memory, zero])
        pointer = self.address(memory)
        self._point = saved
        return pointer

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
        key = width, element
        if key not in self._vectors:
            self._vectors[key] = ir.VectorType.get([width], element, loc=self.location)
        return self._vectors[key]

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
        """An index constant, modulo 2**64, as indices are computed: a position is right though a factor of it wraps."""
        value = (value + 2**63) % 2**64 - 2**63
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
