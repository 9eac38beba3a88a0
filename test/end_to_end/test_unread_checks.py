"""What may fail and whose result nobody reads: compiled code refuses the calls that ``evaluate`` does.

Of every relax op ``fuzzing/size_variants.py`` makes such functions too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from fuzzing.index_extremes import compare
from relaxir.dialect import ops  # noqa: F401  fills the dialect
from relaxir.dialect.relax import Relax
from relaxir.lowering.check_scalars import CHECKED
from support.extern_library import extern_library

#: Numbers that lines read; ``%v`` is 1 where nothing fails, and 0 where something does.
HEAD = """%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %v = tensor.extract %number[] : tensor<i64>
  %positive = arith.index_cast %v : i64 to index
  %inside = arith.subi %c4, %positive : index
  %offset = arith.subi %c3, %positive : index
  %axis = arith.subi %c1, %positive : index
  %shift = arith.subi %c64, %positive : index
  %float = tensor.extract %x[%c0] : tensor<4xf32>
  %go = tensor.extract %truth[] : tensor<i1>"""

#: A line that fails where indices, sizes and numbers are wrong, by the op that does.
LINES = {
    "relax.take": '%r = "relax.take"(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>',
    "relax.packed_take": """%r = "relax.packed_take"(%p, %i) {layout = "tile 4", n = 4 : i64} :
        (tensor<1x2x4xf32>, tensor<2xi64>) -> tensor<2x2xf32>""",
    "relax.gather_elements": '%r = "relax.gather_elements"(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>',
    "relax.gather_nd": """%w = "relax.reshape"(%i) : (tensor<2xi64>) -> tensor<2x1xi64>
        %r = "relax.gather_nd"(%x, %w) : (tensor<4xf32>, tensor<2x1xi64>) -> tensor<2xf32>""",
    "relax.index_copy": """%w = "relax.take"(%x, %j) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
        %r = "relax.index_copy"(%x, %i, %w) : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4xf32>""",
    "relax.scatter_elements": """%w = "relax.take"(%x, %j) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
        %r = "relax.scatter_elements"(%x, %i, %w) : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4xf32>""",
    "relax.call_extern": f"""%r = "relax.call_extern"(%x) {{symbol = "acme_small", library = "LIBRARY",
        operandSegmentSizes = array<i32: {", ".join("1" + "0" * 23)}>,
        resultSegmentSizes = array<i32: {", ".join("1" + "0" * 11)}>}} : (tensor<4xf32>) -> tensor<4xf32>""",
    "relax.match_cast": '%r = "relax.match_cast"(%u) : (tensor<?xf32>) -> tensor<4xf32>',
    "relax.add": '%r = "relax.add"(%x, %u) : (tensor<4xf32>, tensor<?xf32>) -> tensor<4xf32>',
    "relax.reshape": """%w = "relax.reshape"(%u) : (tensor<?xf32>) -> tensor<2x2xf32>
        %r = "relax.reshape"(%w) : (tensor<2x2xf32>) -> tensor<?xf32>""",
    "tensor.cast": "%r = tensor.cast %u : tensor<?xf32> to tensor<4xf32>",
    "tensor.extract": "%r = tensor.extract %x[%inside] : tensor<4xf32>",
    "tensor.insert": "%r = tensor.insert %float into %x[%inside] : tensor<4xf32>",
    "tensor.dim": "%r = tensor.dim %x, %axis : tensor<4xf32>",
    "tensor.extract_slice": "%r = tensor.extract_slice %x[%inside] [1] [1] : tensor<4xf32> to tensor<1xf32>",
    "tensor.insert_slice": """%w = tensor.extract_slice %x[1] [2] [1] : tensor<4xf32> to tensor<2xf32>
        %r = tensor.insert_slice %w into %x[%offset] [2] [1] : tensor<2xf32> into tensor<4xf32>""",
    "tensor.expand_shape": "%r = tensor.expand_shape %u [[0, 1]] output_shape [%c2, 2] : tensor<?xf32> into tensor<?x2xf32>",
    "linalg.add": "%r = linalg.add ins(%x, %u : tensor<4xf32>, tensor<?xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>",
    "scf.for": "scf.for %q = %c0 to %c0 step %positive {}",
    **{f"arith.{n}": f"%r = arith.{n} %float : f32 to i8" for n in ("fptosi", "fptoui")},
    **{
        f"arith.{n}": f"%r = arith.{n} %c3, %positive : index"
        for n in ("divsi", "floordivsi", "ceildivsi", "remsi", "divui", "ceildivui", "remui")
    },
    **{
        f"index.{n}": f"%r = index.{n} %c3, %positive"
        for n in ("divs", "floordivs", "ceildivs", "rems", "divu", "ceildivu", "remu")
    },
    **{
        f"affine.{n}": f"%r = affine.{n} affine_map<(i)[k] -> ((i floordiv k) mod k)>(%c3)[%positive]"
        for n in ("apply", "max", "min")
    },
    **{f"arith.{n}": f"%r = arith.{n} %c3, %shift : index" for n in ("shli", "shrsi", "shrui")},
    **{f"index.{n}": f"%r = index.{n} %c3, %shift" for n in ("shl", "shrs", "shru")},
}

#: Those without reference semantics.
COMPILED_ALONE = {
    "affine.apply", "affine.max", "affine.min",
    "tensor.insert", "tensor.extract_slice", "tensor.insert_slice", "tensor.expand_shape", "linalg.add", "arith.ceildivui",
    "index.floordivs", "index.ceildivs", "index.ceildivu", "index.shl", "index.shrs", "index.shru",
}  # fmt: skip

AROUND = {
    "nothing": "LINE",
    "branch": "scf.if %go { LINE }",
    "loop": "scf.for %turn = %c0 to %c2 step %c1 { LINE }",
    "both": "scf.for %turn = %c0 to %c2 step %c1 { scf.if %go { LINE } }",
}

TEXT = """
func.func @main(%x: tensor<4xf32>, %p: tensor<1x2x4xf32>, %i: tensor<2xi64>, %j: tensor<2xi64>, %u: tensor<?xf32>,
                %number: tensor<i64>, %truth: tensor<i1>) -> tensor<4xf32> {
  HEAD
  AROUND
  return %x : tensor<4xf32>
}
"""


def inputs(fails: bool, goes: bool) -> list[Any]:
    """Those with which every line fails, or none; branches are taken, or not."""
    x = np.full(4, 300 if fails else 3, np.float32)
    packed, wrong = np.ones((1, 2, 4), np.float32), np.array([9, 1] if fails else [3, 1])
    return [x, packed, wrong, np.array([0, 1]), x[: 3 if fails else 4], np.int64(not fails), np.bool_(goes)]


@pytest.mark.parametrize("around", AROUND)
def test_calls_that_an_unread_operation_refuses(around: str, tmp_path: Path) -> None:
    library = extern_library(tmp_path)
    rx.Extern(library=library, symbol="acme_small")
    names = list(LINES)[:: 1 if around in ("nothing", "both") else 3]
    for name in names:
        text = TEXT.replace("HEAD", HEAD).replace("AROUND", AROUND[around]).replace("LINE", LINES[name])
        text = text.replace("LIBRARY", str(library))
        module = rx.Module.parse(text)
        executable = rx.compile(module, cache=False)
        for fails, goes in ((False, True), (True, True), (True, False)):
            refused = fails and (goes or "%go" not in AROUND[around])
            given = inputs(fails, goes)
            assert _refuses(lambda given=given: executable(*given)) == refused, text  # noqa: B023
            if name not in COMPILED_ALONE:
                assert _refuses(lambda given=given: rx.evaluate(module, "main", *given)) == refused, text  # noqa: B023


def _refuses(run: Callable[[], Any]) -> bool:
    try:
        run()
    except rx.RelaxError:
        return True
    return False


def test_every_operation_that_values_may_fail_is_among_them() -> None:
    ours = {cls.OPERATION_NAME for cls in Relax.operations if cls.may_fail}
    assert ours | CHECKED <= set(LINES)


@pytest.mark.parametrize("reader", ["arith.muli %q, %c0 : index", "arith.subi %q, %q : index", "arith.andi %q, %c0 : index"])
def test_calls_that_an_operation_refuses_whose_reader_is_folded(reader: str) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<f32> {{
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %v = tensor.extract %n[] : tensor<i64>
  %w = arith.index_cast %v : i64 to index
  %q = arith.divsi %c3, %w : index
  %k = {reader}
  %e = tensor.extract %x[%k] : tensor<4xf32>
  %r = tensor.from_elements %e : tensor<f32>
  return %r : tensor<f32>
}}"""
    module = rx.Module.parse(text)
    executable = rx.compile(module, cache=False)
    for number in (0, 1):
        compare(module, executable, "main", [np.arange(4, dtype=np.float32), np.int64(number)], text)


def test_weights_that_an_unread_operation_refuses() -> None:
    """They are prepared: that is refused, or the call."""
    text = """func.func @main(%x: tensor<4xf32>, %w: tensor<2xi64> {relax.name = "w"}) -> tensor<4xf32>
    attributes {relax.num_input = 1 : i64} {
  %r = "relax.take"(%x, %w) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  %k = "relax.take"(%w, %w) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return %x : tensor<4xf32>
}"""
    executable = rx.compile(rx.Module.parse(text))
    for indices, fails in (([0, 1], False), ([0, 2], True), ([0, 9], True)):
        weights = {"w": np.array(indices)}
        try:
            got = executable.bind(executable.prepare(weights))(np.ones(4, np.float32))
        except rx.RelaxError:
            assert fails
            continue
        assert not fails
        assert got.tolist() == [1] * 4


#: What a function of its own reads, whose result nobody does.
CALLED = """
func.func private @part(%x: tensor<4xf32>, %i: tensor<2xi64>) -> (tensor<2xf32>, tensor<4xf32>) {
  %r = "relax.take"(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %r, %x : tensor<2xf32>, tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %i: tensor<2xi64>, %n: tensor<i64>) -> tensor<4xf32> {
  %c3 = arith.constant 3 : i64
  %v = tensor.extract %n[] : tensor<i64>
  %q = arith.divsi %c3, %v : i64
  %r:2 = call @part(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}
"""
#: Pipelines that people write; what each drops goes unread.
PIPELINES = [
    "", "canonicalize", "relax-canonicalize,cse", "relax-inline-private-functions,relax-canonicalize",
    "relax-remove-unused-outputs,relax-canonicalize", "relax-remove-unused-outputs,relax-remove-unused-parameters,canonicalize",
    "inline,cse,canonicalize,symbol-dce", "relax-inline-private-functions,relax-lift-transform-params,canonicalize",
]  # fmt: skip


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipelines_of_users_drop_no_check(pipeline: str) -> None:
    module = rx.Module.parse(CALLED)
    executable = rx.compile(module, pipeline=pipeline)
    x = np.arange(4, dtype=np.float32)
    for last, number in ((3, 1), (4, 1), (-5, 1), (3, 0)):
        compare(module, executable, "main", [x, np.array([0, last]), np.int64(number)], CALLED)
