"""One relax op on arrays: attributes read, symbols resolved, the reference function called, results checked by their types."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..attributes import Attr
from ..bindings import ir
from ..dtypes import dtype_name, numpy_dtype
from ..elements import to_numpy
from ..errors import RelaxError
from ..foreign_code import error_text, is_foreign
from ..functions import NAME
from ..op import EffectOp, attrs_of, groups_of
from ..op_sizes import OpSizes, op_sizes
from ..relax import NAMESPACE
from ..struct_info import TensorInfo, is_tensor
from ..symbolic import Dim
from .arguments import check_array
from .io import weight_text
from .numeric import Array
from .registry import Reference, reference_of
from .scope import Scope
from .sizes import check_sizes

__all__ = ["PREFIX", "apply_op"]

PREFIX = f"{NAMESPACE}."

#: What NumPy raises when arrays do not fit an op; anything else is a bug of ours and stays visible.
_NUMPY_ERRORS = (ValueError, IndexError, ZeroDivisionError, OverflowError, MemoryError)
#: Ops that call back into the user's code, whose exceptions pass through unchanged.
_CALLBACKS = frozenset({"relax.get_param", "relax.set_output"})


def apply_op(op: ir.OpView, operands: Sequence[Any], scope: Scope | None = None, sizes: OpSizes | None = None) -> list[Any]:
    """The results of one relax op for given operands.

    Args:
        operands: arrays (callables for a provider or a sink), in the op's order, absent optional ones left out.
        scope: the symbols known around the op; ``match_cast`` and ``get_param`` add to it.
        sizes: what the op needs of sizes; found out when absent.

    Raises:
        RelaxError: the op has no reference semantics, or the arrays do not fit it or its result types. Located at the op.
    """
    name = op.operation.name
    try:
        found = op_sizes(cast(EffectOp, op)) if sizes is None else sizes
        scope = Scope() if scope is None else scope
        check_sizes(found, operands, scope)
        return _apply(op, name.removeprefix(PREFIX), operands, scope)
    except RelaxError as error:
        raise RelaxError(f"'{name}' op {error.args[0]}", op.location) from None
    except _NUMPY_ERRORS as error:
        if name in _CALLBACKS:
            raise
        raise RelaxError(f"'{name}' op expected arrays that fit it, got: {error}", op.location) from error
    except Exception as error:
        if not is_foreign(type(op)):
            raise
        message = f"'{name}' op expected a reference function that returns arrays, got {error_text(error)}"
        raise RelaxError(message, op.location) from error


def _apply(op: ir.OpView, name: str, operands: Sequence[Any], scope: Scope) -> list[Any]:
    found = _reference(name)
    attrs = {key: _value(op.attrs[key], value, scope) for key, value in attrs_of(op).items()}
    if found.wants_shape:
        attrs["shape"] = _shape(TensorInfo.of(op.results[0]), scope)
    if found.wants_dtype:
        attrs["dtype"] = numpy_dtype(TensorInfo.of(op.results[0]).dtype)
    if found.wants_results:
        infos = [TensorInfo.of(r) for r in op.results]
        attrs["results"] = [(_shape(info, scope), numpy_dtype(info.dtype)) for info in infos]
    answer = found.function(*groups_of(type(cast(EffectOp, op)))[0].filled(operands), **attrs)
    results = list(answer) if isinstance(answer, tuple) else [answer]
    if len(results) != len(op.results):
        raise RelaxError(f"expected a reference function that returns {len(op.results)} arrays, got {len(results)}")
    for value, result in zip(op.results, results, strict=True):
        if is_tensor(value):
            if not isinstance(result, np.ndarray | np.generic):
                raise RelaxError(f"expected a reference function that returns arrays, got {result!r}")
            _check_result(op, attrs, TensorInfo.of(value), cast(Array, result), scope)
    return results


def _shape(info: TensorInfo, scope: Scope) -> tuple[int, ...]:
    """The sizes of a result; -1 is a dimension that the type does not know."""
    return tuple(-1 if d is None else scope.resolve(d) for d in info.shape)


@functools.cache
def _reference(name: str) -> Reference:
    return reference_of(name)


def _value(spec: Attr, value: Any, scope: Scope) -> Any:
    """An attribute as reference functions take it."""
    if value is None:
        return None
    if spec.symbolic:
        return [scope.resolve(d) for d in value]
    if isinstance(value, ir.Type):
        return numpy_dtype(value)
    return to_numpy(value) if isinstance(value, ir.Attribute) else value


def _check_result(op: ir.OpView, attrs: dict[str, Any], info: TensorInfo, result: Array, scope: Scope) -> None:
    if op.operation.name == "relax.match_cast":
        scope.bind(info.shape, result.shape, _matched(op))
        return
    if op.operation.name == "relax.get_param":
        what = weight_text(attrs["index"], attrs["name"])
        check_array(result, info, what)
        scope.bind(info.shape, result.shape, what)
        return
    same_rank = result.dtype == numpy_dtype(info.dtype) and result.ndim == info.rank
    if not same_rank or not all(_fits(scope, d, s) for d, s in zip(info.shape, result.shape, strict=True)):
        raise RelaxError(f"expected result tensor<{info}>, got {dtype_name(result.dtype)} {list(result.shape)}")
    if not all(scope.knows(d) for d in info.shape if d is not None):
        scope.bind(info.shape, result.shape, "a result")


def _matched(op: ir.OpView) -> str:
    """What messages call the operand of a match_cast: the weight it is, when a call has just read one."""
    owner = op.operands[0].owner
    is_named = isinstance(owner, ir.Operation | ir.OpView) and NAME in owner.operation.attributes
    return f"weight {owner.operation.attributes[NAME]}".replace('"', "'") if is_named else "an operand"


def _fits(scope: Scope, dim: Dim, size: int) -> bool:
    expected = scope.try_resolve(dim)
    return expected is None or expected == size
