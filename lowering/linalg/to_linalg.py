"""A relax module in, linalg on plain tensors out, in place.

Before::

    func.func @main(%x: tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xi1, {sym = ["n"]}> {
      %0 = "relax.exp"(%x) : (...) -> tensor<?x64xf32, {sym = ["n"]}>
      %1 = "relax.isinf"(%0) : (...) -> tensor<?x64xi1, {sym = ["n"]}>
      return %1
    }

after (bodies shortened)::

    func.func @main(%x: tensor<?x64xf32>) -> tensor<?x64xi8> {
      %n = tensor.dim %x, %c0
      %e0 = tensor.empty(%n) : tensor<?x64xf32>
      %0 = linalg.generic {(i, j) -> (i, j), (i, j) -> (i, j)} ins(%x) outs(%e0) { math.exp }
      %e1 = tensor.empty(%n) : tensor<?x64xi8>
      %1 = linalg.generic {...} ins(%0) outs(%e1) { math.absf; arith.cmpf; arith.extui }
      return %1
    }

One walk: an op of the dialect is replaced by what its lowering emits; every other op keeps its place and gets the new values as
operands. Types change everywhere as :mod:`.dtypes` says. An op of another dialect that computes on ``i1`` tensors (linalg from
elsewhere) keeps doing so: its operands and results are converted around it. Loops carry tensors in place. Private functions
are added for matrix products and attention; failed run-time checks, ``cf.assert`` among them, call ``@relax_check(i1, i64)``
with the number of a message in the module's ``relax.checks``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...dialect.analysis.known_sizes import KnownSizes, Shape, argument_shapes, known_sizes
from ...dialect.analysis.size_bounds import symbol_ranges
from ...dialect.bindings import func, ir
from ...dialect.errors import RelaxError
from ...dialect.foreign_code import error_text, is_foreign
from ...dialect.functions import body_of, functions, is_private, name_of
from ...dialect.op import EffectOp, attrs_of
from ...dialect.struct_info import TensorInfo, is_tensor, without_encoding
from ...dialect.symbolic import Expr, dim_text, is_open
from ...dialect.traversal import Nested, nested_operations, run_nested
from ...dialect.weight_layouts import WeightLayouts
from ..lowering_pass import LoweringPass
from ..marks import CHECKS
from .builder import LinalgBuilder, Tensor, value_type
from .creation import constant_tensor
from .dtypes import is_boolean, storage_type
from .key_blocks import KeyBlocks
from .registry import Source, lowering_of
from .scalar import Scalar, emit
from .size_checks import check_relations, made_size, match_results, match_size, refined_shape

__all__ = ["RelaxToLinalg", "relax_to_linalg"]

_CHECK = "relax_check"

#: Ops that pass tensors on, whatever the element type is.
_CARRIERS = ("func.", "scf.")


@dataclass(frozen=True)
class RelaxToLinalg(LoweringPass):
    """The conversion as a pass.

    Attributes:
        tile: columns per panel of matrices that are packed at run time; None: what the module's ``relax.weight_layouts`` say.
        attention_keys: of a block of attention; None: what suits processors (:class:`.key_blocks.KeyBlocks`).
        attention_parts: blocks of keys that threads share; None: the same.
    """

    name: ClassVar[str] = "relax-to-linalg"
    tile: int | None = None
    attention_keys: int | None = None
    attention_parts: int | None = None

    def run(self, op: ir.Operation) -> None:
        tile = WeightLayouts.of(op).columns if self.tile is None else self.tile
        relax_to_linalg(op, tile=tile, key_blocks=self._key_blocks(), panels=WeightLayouts.of(op).panels)

    def _key_blocks(self) -> KeyBlocks:
        keys, parts = self.attention_keys, self.attention_parts
        for name, value in (("attention-keys", keys), ("attention-parts", parts)):
            if value is not None and value < 1:
                raise RelaxError(f"expected positive {name}, got {value}")
        usual = KeyBlocks() if keys is None else KeyBlocks(keys, keys, keys)
        return usual if parts is None else replace(usual, parts=parts)


def relax_to_linalg(module: ir.Operation, *, tile: int, key_blocks: KeyBlocks | None = None, panels: bool = True) -> None:
    """Converts every function of a module in place; linear in the number of ops.

    Args:
        module: a verified module of relax functions.
        tile: columns per panel of matrices that are packed at run time.
        panels: whether matrix products pack and widen factors first; else they read them as they are.
        key_blocks: how attention cuts its keys; None: what suits processors.

    Raises:
        RelaxError: an op cannot be lowered, at its location; the module is then half converted.
    """
    if tile < 1:
        raise RelaxError(f"expected a positive tile, got {tile}")
    with module.context as context, ir.Location.unknown():
        for dialect in ("arith", "bufferization", "func", "linalg", "math", "scf", "tensor"):
            context.get_dialect_descriptor(dialect)
        _Converter(module, LinalgBuilder(module, tile, key_blocks or KeyBlocks(), panels=panels)).run()


class _Converter:
    """One conversion of one module."""

    def __init__(self, module: ir.Operation, builder: LinalgBuilder):
        self.module, self.builder = module, builder
        self.builder.check_function = self._declare_check
        self.tensors: dict[ir.Value, Tensor] = {}
        self.sizes = KnownSizes()
        self.callers: frozenset[str] = frozenset()
        self.lowered: list[ir.Operation] = []
        # Taking a type apart costs more than creating an op, and a model has few types.
        self._storage: dict[ir.Type, ir.Type] = {}
        if CHECKS in module.attributes:
            messages = [ir.StringAttr(a).value for a in ir.ArrayAttr(module.attributes[CHECKS])]
            self.builder.checks.update({message: i for i, message in enumerate(messages)})
        self._check_declared = any(name_of(f) == _CHECK for f in functions(module))
        # A converted module stays as it is: its loops have their copies.
        self._is_converted = not any(op.name.startswith("relax.") for op in nested_operations(module))

    def run(self) -> None:
        for function in functions(self.module):
            with function.location:
                self._function(function)
        if self.builder.checks:
            self.module.attributes[CHECKS] = ir.ArrayAttr.get([ir.StringAttr.get(c) for c in self.builder.checks])

    def _declare_check(self) -> None:
        if self._check_declared:
            return
        self._check_declared = True
        types = [ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)]
        with ir.InsertionPoint(self.module.regions[0].blocks[0]), ir.Location.unknown():
            func.FuncOp(_CHECK, (types, []), visibility="private")

    # -- functions -------------------------------------------------------------------------------------------------

    def _function(self, function: func.FuncOp) -> None:
        signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        types = [self._stored(t, function.operation) for t in signature.inputs]
        results = [self._stored(t, function.operation) for t in signature.results]
        block = body_of(function)
        if block is not None:
            if len(function.regions[0].blocks) > 1:
                raise RelaxError(f"expected a function of one block, got @{name_of(function)}", function.location)
            self.sizes = known_sizes(function)
            self.callers = frozenset() if is_private(function) else _names(argument_shapes(function).values())
            self.builder.ranges = dict.fromkeys(self.callers, (1, None)) | dict(symbol_ranges(function))
            with self.builder.symbols.function({name: self._opened(name) for name in self.sizes.opened}):
                self._arguments(block, types)
                run_nested(self._block(block))
            self._erase_lowered()
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))

    def _arguments(self, block: ir.Block, types: Sequence[ir.Type]) -> None:
        """Changes the arguments' types and defines the symbols of their shapes."""
        for argument, type_ in zip(block.arguments, types, strict=True):
            self._retype(argument, type_)
        arguments = [self.tensors[a] for a in block.arguments if a in self.tensors]
        b = self.builder
        with ir.InsertionPoint.at_block_begin(block):
            dims = [(d, t, axis) for t in arguments for axis, d in enumerate(t.shape) if isinstance(d, Expr)]
            # Plain names first: they solve the expressions.
            for dim, tensor, axis in sorted(dims, key=lambda entry: not entry[0].text.isidentifier()):
                if not b.symbols.knows(dim):
                    b.symbols.bind(dim, b.as_index(b.dim(tensor.value, axis)))

    def _opened(self, name: str) -> Callable[[], ir.Value]:
        """What emits the size that an open name stands for."""

        def emit_size() -> ir.Value:
            value, axis = self.sizes.opened[name]
            return self.builder.as_index(self.builder.dim(self.tensors[value].value, axis))

        return emit_size

    def _retype(self, value: ir.Value, type_: ir.Type) -> None:
        """Gives a value that stays its stored type."""
        if not is_tensor(type_):
            return
        self.tensors[value] = Tensor(value, self.sizes.info(value))
        if value.type != type_:
            value.set_type(type_)

    def _stored(self, type_: ir.Type, op: ir.Operation) -> ir.Type:
        _check_no_tuple(type_, op)
        try:
            return storage_type(type_)
        except RelaxError as error:
            raise RelaxError(error.args[0], op.location) from None

    def _erase_lowered(self) -> None:
        for op in reversed(self.lowered):
            op.erase()
        self.lowered.clear()
        self.tensors.clear()  # a value of the next function may get the address of an erased one, and would be taken for it

    # -- operations ------------------------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> Nested:
        for op in list(block.operations):
            with ir.InsertionPoint(op), op.location:
                if isinstance(op, EffectOp):
                    self._lower(op)
                else:
                    yield self._keep(op.operation)

    def _lower(self, op: EffectOp) -> None:
        self.builder.source = op.operation.name
        try:
            operands = [self._operand(v) for v in op.operands if v in self.tensors]
            sizes, needed = self.sizes.of(op)
            check_relations(self.builder, sizes, needed, self.callers)
            operands = [self._refined(x, refined_shape(sizes, i)) for i, x in enumerate(operands)]
            infos = [self.sizes.info(r) for r in op.results if is_tensor(r)]
            values = _lowered(self.builder, Source(op, operands, attrs_of(op), infos, sizes.unknown))
            for position, (old, value) in enumerate(zip(op.results, values, strict=True)):
                self._check_unproven(old, value, [axis for result, axis in sizes.unproven if result == position])
                self._define(old, value)
        except RelaxError as error:
            message = error.args[0]
            prefix = f"'{op.operation.name}' op "
            raise RelaxError(message if message.startswith(prefix) else prefix + message, op.location) from None
        self.lowered.append(op.operation)

    def _define(self, old: ir.Value, made: ir.Value | Tensor) -> None:
        """Notes what a result has become; a scalar takes the result's place at once."""
        if isinstance(made, ir.Value) and not is_tensor(made):
            old.replace_all_uses_with(made)
            return
        info, stored = self.sizes.info(old), self._stored_type(old.type)
        if isinstance(made, ir.Value):
            self.tensors[old] = Tensor(self.builder.cast(made, stored), info)
        elif made.parts or made.order:
            self.tensors[old] = made
        else:
            self.tensors[old] = replace(made, value=self.builder.cast(made.value, stored), info=info)

    def _check_unproven(self, result: ir.Value, made: ir.Value | Tensor, axes: Sequence[int]) -> None:
        """Checks the sizes of a result that its type says and nothing proves."""
        b = self.builder
        for axis in axes:
            dim = self.sizes.shapes[result][axis]
            message = f"'{b.source}' op expected a result of size {dim} at dimension {axis}"
            match_size(b, made_size(b, made if isinstance(made, ir.Value) else made.value, axis), dim, message)

    def _stored_type(self, type_: ir.Type) -> ir.Type:
        """The type that a tensor type is stored as."""
        found = self._storage.get(type_)
        if found is None:
            found = self._storage[type_] = storage_type(type_)
        return found

    def _keep(self, op: ir.Operation) -> Nested:
        """An op of another dialect: new operands, new types where it only passes tensors on."""
        if op.name == "arith.constant" and is_tensor(op.results[0]):
            try:
                self.tensors[op.results[0]] = constant_tensor(self.builder, op.attributes["value"])
            except RelaxError as error:
                raise RelaxError(f"'{op.name}' op {error.args[0]}", op.location) from None
            self.lowered.append(op)
            return
        if op.name == "cf.assert":
            self.builder.check(op.operands[0], ir.StringAttr(op.attributes["msg"]).value)
            self.lowered.append(op)
            return
        carrier = op.name.startswith(_CARRIERS)
        if op.name == "tensor.extract" and self._is_converted_boolean(op.operands[0]):
            self._extract_boolean(op)
            return
        shapes = [self.sizes.shapes[v] for v in op.operands if v in self.sizes.shapes]
        for i, value in enumerate(list(op.operands)):
            if value in self.tensors:
                new = self._stored_tensor(value) if carrier else self._computed_tensor(value, op)
                if new != value:
                    op.operands[i] = new
        if op.name == "scf.for" and not self._is_converted:
            self._hide_shapes(op)
        if len(op.regions):
            yield self._regions(op)
        for result in op.results:
            _check_no_tuple(result.type, op)
            self._retype(result, self._stored(result.type, op) if carrier else without_encoding(result.type))
        self._match(op, shapes)

    def _match(self, op: ir.Operation, shapes: Sequence[Shape]) -> None:
        """Sizes that the types of results say, and that come from elsewhere."""
        results = [self.tensors[r] for r in op.results if is_tensor(r)]
        if not results:
            return
        b = self.builder
        with ir.InsertionPoint.after(op):
            match_results(b, op, results, shapes)
            for axis, dim in enumerate(results[0].shape if op.name == "tensor.cast" else ()):
                if dim != shapes[0][axis]:
                    message = f"'tensor.cast' op expected dimension {axis} to be {dim_text(dim)}"
                    known = shapes[0][axis]
                    size = b.evaluate(known) if not is_open(known) and b.knows(known) else made_size(b, op.operands[0], axis)
                    match_size(b, size, dim, message)

    def _hide_shapes(self, loop: ir.Operation) -> None:
        """Tensors of unknown dimensions that a loop starts from become copies.

        Upstream takes the shape in front of a ``tensor.cast`` for that of every iteration.
        """
        start, (_, *carried) = list(loop.operands)[3:], loop.regions[0].blocks[0].arguments
        for i, (value, argument) in enumerate(zip(start, carried, strict=True)):
            if is_tensor(value) and None in TensorInfo.of(argument).shape:
                segments = ir.DenseI32ArrayAttr.get([0, 1, 0])
                loop.operands[3 + i] = emit(
                    "bufferization.alloc_tensor", value_type(value), value, operandSegmentSizes=segments
                )

    def _regions(self, op: ir.Operation) -> Nested:
        for region in op.regions:
            for block in region.blocks:
                with self.builder.symbols.scope():
                    for argument in block.arguments:
                        self._retype(argument, self._stored(argument.type, op))
                    with ir.InsertionPoint.at_block_begin(block):
                        arguments = [self.tensors[a] for a in block.arguments if is_tensor(a)]
                        match_results(self.builder, op, arguments, ())
                    yield self._block(block)

    # -- values between this conversion's types and other dialects' --------------------------------------------------

    def _operand(self, value: ir.Value) -> Tensor:
        tensor = self.tensors[value]
        stored = self._stored_tensor(value)
        return tensor if stored is tensor.value else replace(tensor, value=stored)

    def _refined(self, tensor: Tensor, known: Mapping[int, int | Expr]) -> Tensor:
        """An operand under a type that has the sizes which have been checked."""
        if not known:
            return tensor
        shape = [known.get(axis, dim) for axis, dim in enumerate(tensor.shape)]
        if tensor.parts or tensor.order:
            return replace(tensor, info=tensor.info.with_(shape=shape))
        type_ = value_type(tensor.value)
        static = [d if isinstance(d, int) else s for d, s in zip(shape, type_.shape, strict=True)]
        value = self.builder.cast(tensor.value, ir.RankedTensorType.get(static, type_.element_type))
        return replace(tensor, value=value, info=tensor.info.with_(shape=shape))

    def _stored_tensor(self, value: ir.Value) -> ir.Value:
        """A tensor as it is stored; one of ``i1`` that another dialect made is converted here."""
        tensor = self.tensors[value]
        if not is_boolean(value_type(tensor.value).element_type):
            return tensor.value
        b, rank = self.builder, tensor.rank
        i8 = ir.IntegerType.get_signless(8)
        out = b.empty(b.value_sizes(tensor.value), i8)
        return b.generic("p" * rank, [(tensor.value, range(rank))], out, lambda x, _: emit("arith.extui", i8, x))

    def _computed_tensor(self, value: ir.Value, op: ir.Operation) -> ir.Value:
        """A tensor as another dialect computes on it."""
        tensor = self.tensors[value]
        element = value_type(tensor.value).element_type
        if tensor.dtype == element or op.name == "tensor.dim":
            return tensor.value
        if not is_boolean(tensor.dtype):
            raise RelaxError(
                f"'{op.name}' op expected operands of signless integers or floats, got {tensor.dtype}", op.location
            )
        b, rank = self.builder, tensor.rank
        out = b.empty(b.value_sizes(tensor.value), tensor.dtype)
        return b.generic(
            "p" * rank, [(tensor.value, range(rank))], out, lambda x, _: Scalar(x).compare("ne", 0).value
        )  # fmt: skip

    def _is_converted_boolean(self, value: ir.Value) -> bool:
        tensor = self.tensors.get(value)
        return tensor is not None and is_boolean(tensor.dtype) and not is_boolean(value_type(tensor.value).element_type)

    def _extract_boolean(self, op: ir.Operation) -> None:
        """``tensor.extract`` of a truth value, as a condition of control flow needs it."""
        source, *indices = op.operands
        tensor = self.tensors[source]
        stored = emit("tensor.extract", value_type(tensor.value).element_type, tensor.value, *indices)
        op.results[0].replace_all_uses_with(Scalar(stored).compare("ne", 0).value)
        self.lowered.append(op)


def _lowered(builder: LinalgBuilder, source: Source) -> list[ir.Value | Tensor]:
    """What the lowering of an op makes of it: a value for each result."""
    lower = lowering_of(source.op.operation.name)
    try:
        made = lower(builder, source)
    except Exception as error:
        if isinstance(error, RelaxError) or not is_foreign(lower):
            raise
        raise RelaxError(f"expected a lowering that returns values, got {error_text(error)}") from error
    values: list[Any] = [made] if isinstance(made, ir.Value | Tensor) else list(made) if isinstance(made, list | tuple) else []
    if len(values) != len(source.op.results) or not all(isinstance(v, ir.Value | Tensor) for v in values):
        raise RelaxError(f"expected a lowering that returns {len(source.op.results)} values, got {made!r}")
    return values


def _names(shapes: Iterable[Shape]) -> frozenset[str]:
    """The symbols that are dimensions of their own."""
    return frozenset(str(d) for shape in shapes for d in shape if isinstance(d, Expr) and str(d).isidentifier())


def _check_no_tuple(type_: ir.Type, op: ir.Operation) -> None:
    if isinstance(type_, ir.TupleType):
        message = f"expected tensors and scalars, got {type_}: relax-expand-tuple-arguments takes tuples away where it can"
        raise RelaxError(f"'{op.name}' op {message}", op.location)
