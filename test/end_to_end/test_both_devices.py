"""Modules with values on a GPU and on the host: placed as RealizeVDevice does, copied by transfers, in code of one artifact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from end_to_end.test_cuda_checks import on_device

import relaxir as rx

CPU, GPU = ', {vdevice = "cpu:0"}', ', {vdevice = "cuda:0"}'
H4, D4 = (f"tensor<4xf32{device}>" for device in (CPU, GPU))
HN, DN = (f'tensor<?xf32, {{sym = ["n"], vdevice = "{device}"}}>' for device in ("cpu:0", "cuda:0"))
METAL = 'tensor<4xf32, {vdevice = "metal:0"}>'
ANY = f"tensor<?xf32{CPU}>"

#: TVM's test_multi_device: a product on each, the second one on what the first one gave.
CPU_AND_GPU = """
module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
  func.func @main(%x: tensor<?x3xf32, {sym = ["n"]}>, %y: tensor<3x4xf32>, %z: tensor<4x5xf32>)
      -> tensor<?x5xf32, {sym = ["n"]}> {
    %x0 = "relax.hint_on_device"(%x) {vdevice = "FIRST"} : (tensor<?x3xf32, {sym = ["n"]}>) -> tensor<?x3xf32, {sym = ["n"]}>
    %0 = "relax.matmul"(%x0, %y) : (tensor<?x3xf32, {sym = ["n"]}>, tensor<3x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
    %1 = "relax.hint_on_device"(%0) {vdevice = "SECOND"} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
    %2 = "relax.matmul"(%1, %z) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x5xf32>) -> tensor<?x5xf32, {sym = ["n"]}>
    return %2 : tensor<?x5xf32, {sym = ["n"]}>
  }
}
"""
#: There and back, with equal constants and fills on both sides, which passes take for one.
ROUND = f"""
func.func @main(%h: {H4}, %d: {D4}) -> ({H4}, {D4}, {D4}) {{
  %c = "relax.constant"() {{value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}} : () -> {H4}
  %e = "relax.constant"() {{value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}} : () -> {D4}
  %h0 = "relax.full"() {{value = 2.0 : f64}} : () -> {H4}
  %d0 = "relax.full"() {{value = 2.0 : f64}} : () -> {D4}
  %hs = "relax.cumsum"(%h0) {{axis = 0 : i64}} : ({H4}) -> {H4}
  %ds = "relax.cumsum"(%d0) {{axis = 0 : i64}} : ({D4}) -> {D4}
  %h1 = "relax.add"(%h, %c) : ({H4}, {H4}) -> {H4}
  %d1 = "relax.multiply"(%d, %e) : ({D4}, {D4}) -> {D4}
  %h2 = "relax.to_vdevice"(%h1) {{vdevice = "cuda:0"}} : ({H4}) -> {D4}
  %d2 = "relax.to_vdevice"(%d1) {{vdevice = "cpu:0"}} : ({D4}) -> {H4}
  %h3 = "relax.add"(%d2, %hs) : ({H4}, {H4}) -> {H4}
  %d3 = "relax.add"(%h2, %ds) : ({D4}, {D4}) -> {D4}
  %h4 = "relax.cumsum"(%h3) {{axis = 0 : i64}} : ({H4}) -> {H4}
  %z = "relax.to_vdevice"(%hs) {{vdevice = "cuda:0"}} : ({H4}) -> {D4}
  return %h4, %d3, %z : {H4}, {D4}, {D4}
}}
"""
#: Loops that carry a tensor on each, a branch by a value of the host's, one by a value of the GPU's, sizes that change.
FLOW = f"""
func.func @main(%h: {HN}, %d: {DN}, %count: tensor<i64{CPU}>) -> ({HN}, {DN}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0.0 : f32
  %n = tensor.extract %count[] : tensor<i64{CPU}>
  %times = arith.index_cast %n : i64 to index
  %0:2 = scf.for %i = %c0 to %times step %c1 iter_args(%a = %h, %b = %d) -> ({HN}, {DN}) {{
    %p = "relax.to_vdevice"(%b) {{vdevice = "cpu:0"}} : ({DN}) -> {HN}
    %q = "relax.add"(%a, %p) : ({HN}, {HN}) -> {HN}
    %first = tensor.extract %q[%c0] : {HN}
    %up = arith.cmpf ogt, %first, %none : f32
    %r = scf.if %up -> ({DN}) {{
      %t = "relax.to_vdevice"(%q) {{vdevice = "cuda:0"}} : ({HN}) -> {DN}
      scf.yield %t : {DN}
    }} else {{
      %t = "relax.negative"(%b) : ({DN}) -> {DN}
      scf.yield %t : {DN}
    }}
    scf.yield %q, %r : {HN}, {DN}
  }}
  %big = tensor.extract %0#1[%c0] : {DN}
  %is = arith.cmpf ogt, %big, %none : f32
  %1 = scf.if %is -> ({HN}) {{
    %t = "relax.exp"(%0#0) : ({HN}) -> {HN}
    scf.yield %t : {HN}
  }} else {{
    scf.yield %0#0 : {HN}
  }}
  return %1, %0#1 : {HN}, {DN}
}}
"""
#: Loops on the host whose tensors change their size, so that they allocate, and a value that comes and goes in each round.
GROWING = f"""
func.func @main(%h: {HN}, %d: {D4}) -> tensor<1xf32{GPU}> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %start = tensor.cast %h : {HN} to {ANY}
  %0:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %start, %b = %d) -> ({ANY}, {D4}) {{
    %p = "relax.to_vdevice"(%b) {{vdevice = "cpu:0"}} : ({D4}) -> {H4}
    %q = "relax.concat"(%a, %p) {{axis = 0 : i64}} : ({ANY}, {H4}) -> {ANY}
    %u = "relax.cumsum"(%p) {{axis = 0 : i64}} : ({H4}) -> {H4}
    %v = "relax.to_vdevice"(%u) {{vdevice = "cuda:0"}} : ({H4}) -> {D4}
    scf.yield %q, %v : {ANY}, {D4}
  }}
  %1 = "relax.sum"(%0#0) {{axis = array<i64: 0>, keepdims = true}} : ({ANY}) -> tensor<1xf32{CPU}>
  %2 = "relax.to_vdevice"(%1) {{vdevice = "cuda:0"}} : (tensor<1xf32{CPU}>) -> tensor<1xf32{GPU}>
  return %2 : tensor<1xf32{GPU}>
}}
"""
#: A weight that both read, one that is transposed on its way to the GPU, and one of the host's.
WEIGHTS = f"""
func.func @main(%x: tensor<2x4xf32{CPU}>, %w: tensor<4x4xf32{CPU}> {{relax.name = "w"}},
    %t: tensor<6x4xf32{CPU}> {{relax.name = "t"}}) -> (tensor<2x6xf32{GPU}>, tensor<2x4xf32{GPU}>)
    attributes {{relax.num_input = 1 : i64}} {{
  %0 = "relax.matmul"(%x, %w) : (tensor<2x4xf32{CPU}>, tensor<4x4xf32{CPU}>) -> tensor<2x4xf32{CPU}>
  %1 = "relax.to_vdevice"(%0) {{vdevice = "cuda:0"}} : (tensor<2x4xf32{CPU}>) -> tensor<2x4xf32{GPU}>
  %2 = "relax.permute_dims"(%t) {{axes = array<i64: 1, 0>}} : (tensor<6x4xf32{CPU}>) -> tensor<4x6xf32{CPU}>
  %3 = "relax.to_vdevice"(%2) {{vdevice = "cuda:0"}} : (tensor<4x6xf32{CPU}>) -> tensor<4x6xf32{GPU}>
  %4 = "relax.matmul"(%1, %3) : (tensor<2x4xf32{GPU}>, tensor<4x6xf32{GPU}>) -> tensor<2x6xf32{GPU}>
  %5 = "relax.to_vdevice"(%w) {{vdevice = "cuda:0"}} : (tensor<4x4xf32{CPU}>) -> tensor<4x4xf32{GPU}>
  %6 = "relax.matmul"(%1, %5) : (tensor<2x4xf32{GPU}>, tensor<4x4xf32{GPU}>) -> tensor<2x4xf32{GPU}>
  return %4, %6 : tensor<2x6xf32{GPU}>, tensor<2x4xf32{GPU}>
}}
"""


#: State on the host, which counts, and state on the GPU, which adds up.
STATE = f"""
func.func @main(%x: {H4}, %k: {H4} {{relax.name = "k"}}) -> ({H4} {{relax.name = "k"}})
    attributes {{relax.state = {{k = dense<0.0> : tensor<4xf32>}}}} {{
  %0 = "relax.add"(%x, %k) : ({H4}, {H4}) -> {H4}
  return %0 : {H4}
}}
"""
STATES = f"""
func.func @main(%x: {D4}, %h: {H4} {{relax.name = "h"}}, %d: {D4} {{relax.name = "d"}})
    -> ({D4}, {H4} {{relax.name = "h"}}, {D4} {{relax.name = "d"}})
    attributes {{relax.state = {{h = dense<1.0> : tensor<4xf32>, d = dense<0.0> : tensor<4xf32>}}}} {{
  %0 = "relax.add"(%h, %h) : ({H4}, {H4}) -> {H4}
  %1 = "relax.add"(%d, %x) : ({D4}, {D4}) -> {D4}
  %2 = "relax.to_vdevice"(%h) {{vdevice = "cuda:0"}} : ({H4}) -> {D4}
  %3 = "relax.multiply"(%1, %2) : ({D4}, {D4}) -> {D4}
  return %3, %0, %1 : {D4}, {H4}, {D4}
}}
"""


def compiled(text: str, **options: Any) -> rx.Executable:
    return rx.compile(rx.Module.parse(text), "cuda:sm_80", device="emulated", **options)


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def agree(text: str, *inputs: np.ndarray) -> rx.Executable:
    executable = compiled(text)
    got = executable(*inputs)
    want = rx.evaluate(rx.Module.parse(text), "main", *inputs)
    for one, other in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)  # f32 sums in another order
    return executable


@pytest.mark.parametrize(("first", "second", "host"), [("cuda:0", "cpu:0", [2, 3]), ("cpu:0", "cuda:0", [0, 1])])
def test_a_module_split_over_two_devices(first: str, second: str, host: list[int]) -> None:
    text = CPU_AND_GPU.replace("FIRST", first).replace("SECOND", second)
    executable = agree(text, array(2, 3), array(3, 4, seed=1), array(4, 5, seed=2))
    assert executable.manifest.data["cuda"]["host"] == [{"symbol": "relaxir_main", "tensors": host}]
    assert len(executable.manifest.data["cuda"]["kernels"]) == 1, "the other product is the host's"
    assert f"copy to {second.partition(':')[0]}" in str(executable.report)
    assert executable(array(0, 3), array(3, 4), array(4, 5)).shape == (0, 5)


def test_copies_in_both_directions_and_constants_on_both_sides() -> None:
    agree(ROUND, array(4), array(4, seed=1))


@pytest.mark.parametrize("count", [0, 3])
def test_control_flow_with_values_on_both(count: int) -> None:
    for sign in (1, -1):
        agree(FLOW, sign * np.abs(array(5)), array(5, seed=1), np.array(count))


def test_loops_that_allocate_on_the_host() -> None:
    agree(GROWING, array(3), array(4, seed=1))


def test_weights_on_both_and_an_artifact(tmp_path: Path) -> None:
    module, raw = rx.Module.parse(WEIGHTS), {"w": array(4, 4), "t": array(6, 4, seed=1)}
    rx.compile(module, "cuda:sm_80").save(tmp_path / "m.relax")
    executable = rx.load(tmp_path / "m.relax", device="emulated")
    executable.prepare(raw, tmp_path / "p.safetensors")
    x = array(2, 4, seed=2)
    for got, want in zip(
        executable.bind(tmp_path / "p.safetensors")(x), rx.evaluate(module, "main", x, weights=raw), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert not any("transfer" in s["symbol"] for s in executable.manifest.data["steps"] if s.get("symbol"))


def test_results_and_arguments_where_they_belong() -> None:
    executable = compiled(CPU_AND_GPU.replace("FIRST", "cuda:0").replace("SECOND", "cpu:0"))
    x, y, z = array(2, 3), array(3, 4, seed=1), array(4, 5, seed=2)
    there = on_device(executable, x)
    got = executable(there, y, z)
    assert isinstance(got, np.ndarray), "a result of the host's is an array, wherever inputs are"
    np.testing.assert_allclose(got, x @ y @ z, rtol=1e-5, atol=1e-5)
    with pytest.raises(rx.RelaxError, match="input 'input2': expected an array in the host's memory, got one on 'emulated'"):
        executable(x, y, on_device(executable, z))
    with pytest.raises(rx.RelaxError, match="output 'output0': expected memory of the host, got some of 'emulated'"):
        executable(there, y, z, out=on_device(executable, got))


def test_checks_on_the_host_are_made_at_once() -> None:
    text = f"""func.func @main(%x: tensor<4xf32{CPU}>, %i: tensor<2xi64{CPU}>) -> tensor<2xf32{GPU}> {{
      %0 = "relax.take"(%x, %i) {{axis = 0 : i64}} : (tensor<4xf32{CPU}>, tensor<2xi64{CPU}>) -> tensor<2xf32{CPU}>
      %1 = "relax.to_vdevice"(%0) {{vdevice = "cuda:0"}} : (tensor<2xf32{CPU}>) -> tensor<2xf32{GPU}>
      return %1 : tensor<2xf32{GPU}>
    }}"""
    executable = agree(text, array(4), np.array([3, -1]))
    with pytest.raises(rx.RelaxError, match=r"expected indices in \[-4, 4\)"):
        executable(array(4), np.array([4, 0]))


def test_what_the_host_does_is_done_in_every_call() -> None:
    """Launches of calls with the same memory are recorded and replayed; what the host computes is in no recording."""
    text = f"""func.func @main(%h: {H4}, %d: {D4}) -> ({H4}, {D4}) {{
      %0 = "relax.add"(%h, %h) : ({H4}, {H4}) -> {H4}
      %1 = "relax.add"(%d, %d) : ({D4}, {D4}) -> {D4}
      return %0, %1 : {H4}, {D4}
    }}"""
    executable, h, d, out = compiled(text), array(4), array(4), (array(4), array(4))
    for number in range(4):
        h[:], d[:] = number, 10 + number
        executable(h, d, out=out)
        assert [a.tolist() for a in out] == [[2 * number] * 4, [20 + 2 * number] * 4]


def test_state_is_where_the_module_says() -> None:
    executable, x = compiled(STATES), np.full(4, 3, np.float32)
    state = executable.new_state()
    state["h"], state["d"] = np.full(4, 5, np.float32), np.full(4, 1, np.float32)
    results = [executable(x, state=state)[0] for _ in range(3)]
    assert results == [(1 + 3) * 5, (1 + 6) * 10, (1 + 9) * 20]
    assert [state[name][0] for name in ("h", "d")] == [40, 10]
    other = state.copy()
    executable(x, state=other)
    assert [s[name][0] for s in (state, other) for name in ("h", "d")] == [40, 10, 80, 13]
    state.reset()
    assert [state[name][0] for name in ("h", "d")] == [1, 0]


def test_the_caller_may_lend_memory_for_state_on_the_host() -> None:
    executable, mine = compiled(STATES), np.full(4, 2, np.float32)
    state = executable.new_state({"h": mine})
    executable(np.ones(4, np.float32), state=state)
    assert mine.tolist() == [4] * 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'func.func @main(%x: {H4}) -> {METAL} {{\n  %0 = "relax.to_vdevice"(%x) {{vdevice = "metal:0"}} : ({H4}) -> {METAL}\n'
         f"  return %0 : {METAL}\n}}",
         "expected tensors on 'cpu:0' or 'cuda:0', got one on 'metal:0'"),
        (STATE.replace("@main", "@one") + STATE.replace(H4, D4).replace("@main", "@two"),
         "expected state 'k' on one device, got it on both"),
    ],
)  # fmt: skip
def test_devices_that_code_for_a_gpu_has_not(text: str, message: str) -> None:
    with pytest.raises(rx.RelaxError, match=message):
        compiled(text)
