"""Functions of other libraries: calls of functions that a later pass (``relax-call-externs``) makes calls of these.

A function reads its operands and writes its results, as bufferization sees it, by a body that nobody runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.extern_functions import library_text
from ...dialect.inference import is_float
from ..extern_calls import ExternCall
from ..manifest_specs import ExternSpec
from ..marks import CUDA_TARGET
from .builder import LinalgBuilder, value_type
from .dtypes import storage_dtype
from .kernel import call_kernel_of_results
from .registry import Source, lowering
from .scalar import emit

__all__: list[str] = []


@lowering("relax.call_extern")
def _lower_call_extern(b: LinalgBuilder, source: Source) -> list[ir.Value]:
    if CUDA_TARGET in b.module.attributes:
        raise RelaxError("expected code for CPUs, whose memory a function of another library reads, got code for a GPU")
    spec = ExternSpec(source.attrs["symbol"], source.attrs["library"])
    message = f"'{b.source}' op expected '{spec.symbol}' of {library_text(spec.library)} to return 0, got an error"
    arguments = tuple(source.attrs["arguments"])
    infos = [*(x.info for x in source.operands), *source.results]
    call = ExternCall(
        spec,
        tuple(str(i.dtype) for i in infos),
        tuple(i.rank for i in infos),
        len(source.operands) - arguments.count(...),
        arguments,
        b.check_number(message),
    )
    outs = [b.empty([b.evaluate(d) for d in i.shape], storage_dtype(i.dtype)) for i in source.results]
    inputs = [x.value for x in source.operands]
    key = (str(call.attribute()),)
    return call_kernel_of_results(b, "extern", inputs, outs, key, lambda given: _body(b, given, len(inputs)), marks=call.marks)


def _body(b: LinalgBuilder, arguments: Sequence[ir.Value], inputs: int) -> list[ir.Value]:
    """Fills each destination with a number that an element of each input takes part in."""
    i64, zero = ir.IntegerType.get_signless(64), b.number(0)
    total = emit("arith.constant", i64, value=ir.IntegerAttr.get(i64, 1))
    for x in arguments[:inputs]:
        type_ = value_type(x)
        element = emit("tensor.extract", type_.element_type, x, *[zero] * type_.rank)
        total = emit("arith.addi", i64, total, _as_i64(element))
    with ir.Location.name(b.source, ir.Location.current):  # which reports read
        return [_filled(b, out, total) for out in arguments[inputs:]]


def _as_i64(element: ir.Value) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    if is_float(element.type):
        element = emit("arith.bitcast", ir.IntegerType.get_signless(ir.FloatType(element.type).width), element)
    return element if element.type == i64 else emit("arith.extui", i64, element)


def _filled(b: LinalgBuilder, out: ir.Value, number: ir.Value) -> ir.Value:
    element = value_type(out).element_type
    width = ir.FloatType(element).width if is_float(element) else ir.IntegerType(element).width
    integer = ir.IntegerType.get_signless(width)
    scalar = number if width == 64 else emit("arith.trunci", integer, number)
    return b.fill_with(out, emit("arith.bitcast", element, scalar) if is_float(element) else scalar)
