"""Elementwise ops behind a reshape of a contraction's result become its epilogue."""

from __future__ import annotations

import re

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import functions, name_of
from relaxir.lowering.fusion.flatten_epilogues import flatten_epilogues
from relaxir.lowering.fusion.outline_kernels import outline_kernels
from support.contractions import PACKED_KERNEL

MAPS = """
#id = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (0, c)>
#line = affine_map<(n, h, w, c) -> (h)>
#place = affine_map<(n, h, w, c) -> (h, w, c)>
#moved = affine_map<(n, h, w, c) -> (n, w, h, c)>
"""
IMAGE = "tensor<?x7x5x64xf32>"


def flattened(
    other: str, map_: str, body: str = "%p = arith.addf %u, %v : f32", outer: str = "", size: str = "?x7x5x64"
) -> str:  # fmt: skip
    """The text of @main, in which an elementwise op reads a convolution's result and another tensor."""
    sizes = ", ".join(size.replace("?", "%n").split("x"))
    text = f"""{MAPS}{PACKED_KERNEL}
func.func @main(%x: tensor<?x64xf32>, %w: tensor<2x64x32xf32>, %other: {other}, %n: index, %m: index) -> {IMAGE} {{
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %y = call @contraction_0(%x, %w, %e) : (tensor<?x64xf32>, tensor<2x64x32xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %z = tensor.expand_shape %y [[0, 1, 2], [3]] output_shape [{sizes}] : tensor<?x64xf32> into {IMAGE}
  {outer}
  %d = tensor.empty(%n) : {IMAGE}
  %r = linalg.generic {{indexing_maps = [#id, {map_}, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%z, %other : {IMAGE}, {other}) outs(%d : {IMAGE}) {{
  ^bb0(%u: f32, %v: f32, %o: f32):
    {body}
    linalg.yield %p : f32
  }} -> {IMAGE}
  return %r : {IMAGE}
}}"""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text.replace("?x7x5x64", size))
        flatten_epilogues(module.operation)
        assert module.operation.verify()
        return next(f.operation.get_asm(use_local_scope=True) for f in functions(module) if name_of(f) == "main")


def test_what_all_channels_share_keeps_its_shape() -> None:
    text = flattened("tensor<1x64xf32>", "#channel")
    assert "affine_map<(d0, d1) -> (0, d1)>" in text
    assert "collapse_shape" not in text
    assert text.index("linalg.generic") < text.index("tensor.expand_shape")


def test_another_image_is_flat_too() -> None:
    text = flattened(IMAGE, "#id")
    assert f"tensor.collapse_shape %arg2 [[0, 1, 2], [3]] : {IMAGE} into tensor<?x64xf32>" in text
    assert text.index("linalg.generic") < text.index("tensor.expand_shape")


def test_a_batch_of_one_may_be_missing() -> None:
    """Of what is added to each element of any image, as positions are."""
    assert "collapse_shape" not in flattened("tensor<7x5x64xf32>", "#place")
    text = flattened("tensor<?x5x64xf32>", "#place", size="1x?x5x64")
    assert "tensor.collapse_shape %arg2 [[0, 1], [2]] : tensor<?x5x64xf32> into tensor<?x64xf32>" in text
    assert text.index("linalg.generic") < text.index("tensor.expand_shape")


def test_what_reads_lines_or_turned_images_stays() -> None:
    assert "(d1)>" in flattened("tensor<7xf32>", "#line")
    assert "(d0, d2, d1, d3)>" in flattened("tensor<?x5x7x64xf32>", "#moved")


def test_what_reads_its_place_stays() -> None:
    body = "%i = linalg.index 1 : index\n %j = arith.index_cast %i : index to i32\n %p = arith.sitofp %j : i32 to f32"
    assert "linalg.index 1" in flattened(IMAGE, "#id", body)


def test_an_image_that_others_read_stays() -> None:
    text = flattened(IMAGE, "#id", outer=f"%c = tensor.cast %z : {IMAGE} to tensor<?x?x?x?xf32>")
    assert "collapse_shape" not in text


def test_it_then_is_an_epilogue() -> None:
    text = flattened("tensor<1x64xf32>", "#channel")
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(MAPS + PACKED_KERNEL + text)
        outline_kernels(module.operation)
        main = next(str(f) for f in functions(module) if name_of(f) == "main")
    assert len(re.findall("call @", main)) == 1
