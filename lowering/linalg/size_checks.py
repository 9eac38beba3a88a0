"""Run-time checks of the relations between sizes that ops need and that types do not prove, once per call and relation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...dialect.analysis.known_sizes import Needed
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.op_sizes import OpSizes
from ...dialect.size_relations import Relation
from ...dialect.symbolic import Dim, Expr, dim_text, is_open, open_place
from .builder import DYNAMIC, LinalgBuilder, Size, Tensor, value_type
from .scalar import Scalar

__all__ = ["check_relations", "made_size", "match_results", "match_size", "refined_shape"]


def check_relations(b: LinalgBuilder, sizes: OpSizes, needed: Sequence[Needed], callers: Collection[str]) -> None:
    """Emits the checks that the op which is being lowered needs.

    Args:
        b: emits at the op.
        sizes: what the types around the op say.
        needed: the relations that they leave open.
        callers: the symbols that a caller of the entry knows, and messages say the values of.

    Raises:
        RelaxError: a relation never holds, or nothing gives a size in it a value.
    """
    for item in needed:
        relation = item.relation
        if relation.decided() is False:
            raise RelaxError(_failure(item, sizes, ()))
        if _defines(b, relation) or not b.symbols.is_new_check((relation.kind, relation.left, relation.right)):
            continue
        b.check(_holds(b, relation).value, f"'{b.source}' op {_failure(item, sizes, callers)}")


def _failure(item: Needed, sizes: OpSizes, callers: Collection[str]) -> str:
    """The message, in which ``{n * 2}`` is for the value that the caller's sizes give it."""

    def shown(dim: int | Expr) -> str:
        found = item.relation.left if dim == item.of_op.left else item.relation.right
        return f"{{{found}}}" if isinstance(found, Expr) and found.names <= set(callers) else dim_text(found)

    return item.of_op.failure(sizes.operands, shown)


def _defines(b: LinalgBuilder, relation: Relation) -> bool:
    """Whether a symbol that nothing has given a value yet gets it from an equal size."""
    left, right = relation.left, relation.right
    if relation.kind != "equal" or not isinstance(right, Expr) or b.symbols.knows(right):
        return False
    if isinstance(left, Expr) and not b.symbols.knows(left):
        return False
    return not b.symbols.bind(right, b.as_index(b.evaluate(left)))


def _holds(b: LinalgBuilder, relation: Relation) -> Scalar:
    left, right = (Scalar(b.as_index(b.evaluate(dim))) for dim in (relation.left, relation.right))
    if relation.kind == "multiple":
        whole = b.arith("muli", b.arith("divsi", left.value, b.arith("maxsi", right.value, 1)), right.value)
        return left.compare("eq", Scalar(b.as_index(whole)))
    return left.compare("eq" if relation.kind == "equal" else "le", right)


def refined_shape(sizes: OpSizes, operand: int) -> dict[int, int | Expr]:
    """The unknown dimensions of an operand that have been checked to be of known size, by axis."""
    found: dict[int, int | Expr] = {}
    for relation in sizes.relations:
        if relation.kind == "equal":
            for open_, known in ((relation.left, relation.right), (relation.right, relation.left)):
                place = open_place(open_) if isinstance(open_, Expr) else None
                if place is not None and place[0] == operand and not is_open(known):
                    found[place[1]] = known
    return found


def match_size(b: LinalgBuilder, size: Size, dim: Dim, message: str) -> None:
    """Defines what is new in a dimension that has to be of a size, and checks what is known."""
    if dim is None:
        return
    if isinstance(dim, Expr) and not b.symbols.knows(dim) and not b.symbols.bind(dim, b.as_index(size)):
        return
    b.check_equal(size, b.evaluate(dim), message)


#: Ops that write into an operand, which the result is as large as, and where that is among their operands.
_INTO = {"linalg.generic": -1, "linalg.fill": -1, "tensor.insert_slice": 1, "tensor.cast": 0}


def made_size(b: LinalgBuilder, value: ir.Value, axis: int) -> Size:
    """The size that a dimension has been made of, which no type has a say in.

    ``tensor.dim`` would be what a later cast says: upstream folds casts into what they cast.
    """
    owner = value.owner
    while isinstance(owner, ir.Operation | ir.OpView) and owner.operation.name in _INTO:
        position = _INTO[owner.operation.name]
        value = list(owner.operation.operands)[position]
        owner = value.owner
    if isinstance(owner, ir.Operation | ir.OpView) and owner.operation.name == "tensor.empty":
        shape = value_type(value).shape
        dynamic = sum(size == DYNAMIC for size in shape[:axis])
        return shape[axis] if shape[axis] != DYNAMIC else owner.operation.operands[dynamic]
    return b.dim(value, axis)


def match_results(b: LinalgBuilder, op: ir.Operation, results: Sequence[Tensor], shapes: Iterable[Sequence[Dim]]) -> None:
    """What the types of results say of a call, or of control flow: which symbols have which values inside is not known here.

    Args:
        b: emits behind the op.
        op: has the results. Regions know the symbols that are known around them, other functions those of their arguments.
        results: the results that are tensors.
        shapes: those of the operands.
    """
    given = {str(d) for shape in shapes for d in shape}
    for number, tensor in enumerate(results):
        for axis, dim in enumerate(tensor.shape):
            if not isinstance(dim, Expr) or is_open(dim) or str(dim) in given or dim.names <= given:
                continue
            if op.name == "func.call" or not b.symbols.knows(dim):
                message = f"'{op.name}' op expected dimension {axis} of result {number} to be {dim}"
                match_size(b, b.dim(tensor.value, axis), dim, message)
