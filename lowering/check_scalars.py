"""What scalar operations of other dialects ask of their operands, as run-time checks: what happens else is undefined in MLIR.

Before::

    %e = tensor.extract %x[%i, %c1] : tensor<4x4xf32>
    %q = arith.divsi %a, %b : i64

after::

    %ok = arith.cmpi ult, %i, %c4 : index
    cf.assert %ok, "'tensor.extract' op expected an index in [0, 4)"
    %e = tensor.extract %x[%i, %c1] : tensor<4x4xf32>
    %some = arith.cmpi ne, %b, %c0 : i64
    %fits = ...
    cf.assert %some, "'arith.divsi' op expected a divisor other than 0"
    cf.assert %fits, "'arith.divsi' op expected a quotient within i64"
    %q = arith.divsi %a, %b : i64

The reference semantics refuses the same (``dialect/reference/scalars.py``). What constants and types prove is not checked. Of
linalg operations the sizes are (:mod:`.linalg_checks`), and what bodies do (:mod:`.linalg_bodies`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.functions import body_of, functions
from ..dialect.struct_info import is_tensor
from ..dialect.traversal import blocks_of, operations
from .affine_divisors import EXPECTED, affine_map, are_positive, unproven_divisors
from .asserted import Asserted
from .linalg.scalar import Scalar, constant, emit
from .linalg_bodies import check_body
from .linalg_checks import size_checks
from .lowering_pass import LoweringPass

__all__ = ["CHECKED", "CheckScalars"]


@dataclass(frozen=True)
class CheckScalars(LoweringPass):
    """Checks the operands of scalar operations of other dialects."""

    name: ClassVar[str] = "relax-check-scalars"

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            block = body_of(function)
            if block is not None:
                _check_blocks(function.regions[0].blocks)


#: How checks begin that name the operator which a linalg operation comes from (:mod:`relaxir.frontend.outline_checks`).
_OF_OPERATOR = "expected sizes that "
#: A condition and what to say where it does not hold.
_Check = tuple[ir.Value, str]
#: A number that is known, or a value.
_Number = int | ir.Value


def _check_blocks(blocks: Iterable[ir.Block]) -> None:
    pending = list(blocks)
    while pending:
        block, before, asserted = pending.pop(), "", Asserted()
        for op in operations(block):
            if op.name.startswith("linalg."):
                _check(op, size_checks, asserted, before if before.startswith(_OF_OPERATOR) else "")
                check_body(op, asserted)
                before = ""
                continue
            pending += blocks_of(op)
            _refuse_tensors(op)
            if op.name in _CHECKS:
                _check(op, _CHECKS[op.name], asserted)
            before = ""
            if op.name == "cf.assert":
                before = ir.StringAttr(op.attributes["msg"]).value
                asserted.note(op)


def _refuse_tensors(op: ir.Operation) -> None:
    """Raises RelaxError for arithmetic of other dialects on whole tensors, but for a choice of one of two."""
    if op.name.partition(".")[0] not in ("arith", "math", "index") or op.name == "arith.constant":
        return
    values = op.operands[:1] if op.name == "arith.select" else [*op.operands, *op.results]
    found = next((v.type for v in values if is_tensor(v)), None)
    if found is not None:
        raise RelaxError(f"'{op.name}' op expected scalars, got {found}", op.location)


def _check(
    op: ir.Operation, checks: Callable[[ir.Operation], Iterator[_Check]], asserted: Asserted, instead: str = ""
) -> None:  # fmt: skip
    """Puts checks in front of an operation, with another message where there is one."""
    with op.location, ir.InsertionPoint(op):
        for condition, message in list(checks(op)):
            asserted.require(condition, instead or f"'{op.name}' op {message}")


def _known(value: ir.Value) -> int | None:
    """The number that a value is, if it is a constant integer."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in ("arith.constant", "index.constant"):
        return None
    attribute = owner.operation.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _is_positive(value: ir.Value) -> bool:
    """Whether a value is the larger one of some number and 1, as slices' steps are where this pass divides by them."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.name == "arith.maxsi" and _known(owner.operands[1]) == 1


def _is_scalar(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IntegerType | ir.IndexType | ir.FloatType)


# -- parts of tensors ----------------------------------------------------------------------------------------------


def _size(tensor: ir.Value, axis: int) -> _Number:
    type_ = ir.RankedTensorType(tensor.type)
    if not type_.is_dynamic_dim(axis):
        return type_.get_dim_size(axis)
    index = ir.IndexType.get()
    return emit("tensor.dim", index, tensor, constant(index, axis).value)


def _as_scalar(number: _Number, unsigned: bool = False) -> Scalar:
    value = constant(ir.IndexType.get(), number).value if isinstance(number, int) else number
    return Scalar(value, unsigned)


def _within(index: ir.Value, size: _Number) -> Iterator[_Check]:
    known = _known(index)
    if known is None or not isinstance(size, int) or not 0 <= known < size:
        inside = Scalar(index, unsigned=True).compare("lt", _as_scalar(size, unsigned=True))
        yield inside.value, f"expected an index in [0, {size if isinstance(size, int) else 'size'})"


def _elements(tensor: ir.Value, indices: Sequence[ir.Value]) -> Iterator[_Check]:
    for axis, index in enumerate(indices):
        yield from _within(index, _size(tensor, axis))


def _extract(op: ir.Operation) -> Iterator[_Check]:
    tensor, *indices = op.operands
    yield from _elements(tensor, indices)


def _insert(op: ir.Operation) -> Iterator[_Check]:
    _, tensor, *indices = op.operands
    yield from _elements(tensor, indices)


def _dim(op: ir.Operation) -> Iterator[_Check]:
    tensor, index = op.operands
    if isinstance(tensor.type, ir.RankedTensorType):
        yield from _within(index, tensor.type.rank)


def _expand(op: ir.Operation) -> Iterator[_Check]:
    """A dimension that is taken apart has as many elements as its parts."""
    source, *values = op.operands
    rest = iter(values)
    sizes = _mixed(op, "static_output_shape", rest)
    for axis, group in enumerate(ir.ArrayAttr(op.attributes["reassociation"])):
        parts = [sizes[ir.IntegerAttr(i).value] for i in ir.ArrayAttr(group)]
        of = _size(source, axis)
        if all(isinstance(n, int) for n in (*parts, of)):
            continue  # MLIR's verifier has looked
        product = functools.reduce(Scalar.__mul__, map(_as_scalar, parts))
        positive = functools.reduce(Scalar.__and__, (_as_scalar(p).compare("ge", 0) for p in parts))
        yield (product.compare("eq", _as_scalar(of)) & positive).value, f"expected parts of dimension {axis}"


def _slice(op: ir.Operation) -> Iterator[_Check]:
    """Of a part that is read, or written, its last element along each dimension."""
    whole = op.operands[0 if op.name == "tensor.extract_slice" else 1]
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    rest = iter(list(op.operands)[sum(segments[:-3]) :])
    numbers = [_mixed(op, name, rest) for name in ("static_offsets", "static_sizes", "static_strides")]
    for axis, (offset, size, stride) in enumerate(zip(*numbers, strict=True)):
        of = _size(whole, axis)
        if all(isinstance(n, int) for n in (offset, size, stride, of)):
            continue  # MLIR's verifier has looked
        step, room = _as_scalar(stride), _as_scalar(of) - 1 - _as_scalar(offset)
        last = Scalar(emit("arith.divui", room.type, room.value, _at_least_one(step).value), unsigned=True)
        fits = Scalar((_as_scalar(size) - 1).value, unsigned=True).compare("le", last)
        starts = Scalar(_as_scalar(offset).value, unsigned=True).compare("lt", _as_scalar(of, unsigned=True))
        inside = step.compare("gt", 0) & starts & fits
        nothing = _as_scalar(size).compare("eq", 0)
        yield (nothing | inside).value, f"expected a part inside of dimension {axis}"


def _mixed(op: ir.Operation, name: str, values: Iterator[ir.Value]) -> list[_Number]:
    dynamic = ir.ShapedType.get_dynamic_size()
    return [next(values) if n == dynamic else n for n in ir.DenseI64ArrayAttr(op.attributes[name])]


def _at_least_one(step: Scalar) -> Scalar:
    return Scalar(emit("arith.maxsi", step.type, step.value, step.lift(1).value))


# -- numbers -------------------------------------------------------------------------------------------------------


def _divide(op: ir.Operation) -> Iterator[_Check]:
    left, right = op.operands
    if not _is_scalar(right):
        return
    known = _known(right)
    if known == 0 or (known is None and not _is_positive(right)):
        yield Scalar(right).compare("ne", 0).value, "expected a divisor other than 0"
    if op.name in _SIGNED and known in (None, -1):
        fits = Scalar(left).compare("ne", -(1 << (_bits(right) - 1))) | Scalar(right).compare("ne", -1)
        yield fits.value, f"expected a quotient within {right.type}"


def _affine(op: ir.Operation) -> Iterator[_Check]:
    if found := unproven_divisors(op):
        yield are_positive(affine_map(op), found, list(op.operands)).value, EXPECTED


def _shift(op: ir.Operation) -> Iterator[_Check]:
    by = op.operands[1]
    if not _is_scalar(by):
        return
    known, bits = _known(by), _bits(by)
    if known is None or not 0 <= known < bits:
        yield Scalar(by, unsigned=True).compare("lt", bits).value, f"expected a shift below {bits}"


def _convert(op: ir.Operation) -> Iterator[_Check]:
    """To an integer: the number without its fraction is one of the type."""
    value, result = op.operands[0], op.results[0]
    if not _is_scalar(value):
        return
    wide, bits = ir.F64Type.get(), _bits(result)
    x = Scalar(value if value.type == wide else emit("arith.extf", wide, value))
    if op.name == "arith.fptoui":
        above, end = x.compare("gt", -1), 2.0**bits
    else:  # -2**63 - 1 is no f64: there, less than -2**63 is too little
        low, end = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1)
        above = x.compare("gt", low - 1) if bits < 53 else x.compare("ge", low)
    yield (above & x.compare("lt", end)).value, f"expected a number within {result.type}"


def _bits(value: ir.Value) -> int:
    return 64 if isinstance(value.type, ir.IndexType) else ir.IntegerType(value.type).width


def _step(op: ir.Operation) -> Iterator[_Check]:
    step = op.operands[2]
    known = _known(step)
    if known is None or known <= 0:
        above = Scalar(step).compare("gt", 0) if "unsignedCmp" not in op.attributes else Scalar(step).compare("ne", 0)
        yield above.value, "expected a positive step"


_SIGNED = ("arith.divsi", "arith.floordivsi", "arith.ceildivsi", "arith.remsi",
           "index.divs", "index.floordivs", "index.ceildivs", "index.rems")  # fmt: skip
_UNSIGNED = ("arith.divui", "arith.ceildivui", "arith.remui", "index.divu", "index.ceildivu", "index.remu")

#: What is asked of the operands of each operation.
_CHECKS: dict[str, Callable[[ir.Operation], Iterator[_Check]]] = {
    "tensor.extract": _extract,
    "tensor.insert": _insert,
    "tensor.dim": _dim,
    "tensor.expand_shape": _expand,
    "tensor.extract_slice": _slice,
    "tensor.insert_slice": _slice,
    "scf.for": _step,
    **dict.fromkeys((*_SIGNED, *_UNSIGNED), _divide),
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui", "index.shl", "index.shrs", "index.shru"), _shift),
    **dict.fromkeys(("affine.apply", "affine.max", "affine.min"), _affine),
    **dict.fromkeys(("arith.fptosi", "arith.fptoui"), _convert),
}

#: The operations whose operands are checked; linalg operations are beside them.
CHECKED = frozenset(_CHECKS)
