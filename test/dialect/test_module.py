"""``relaxir.Module``: what it reads, what it refuses and how it says so; passes give new modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.parser import MAX_NESTING

MATMUL = """\
func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<4x4xf32> {relax.name = "fc.weight"})
    -> (tensor<?x4xf32, {sym = ["n"]}> {relax.name = "y"}) attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
  return %y : tensor<?x4xf32, {sym = ["n"]}>
}
"""
DEAD = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}
"""


def test_text_round_trip():
    module = rx.Module.parse(MATMUL)
    assert str(rx.Module.parse(str(module))) == str(module)


def test_save_and_load(tmp_path: Path):
    module = rx.Module.parse(MATMUL)
    module.save(tmp_path / "m.mlir")
    assert str(rx.Module.load(tmp_path / "m.mlir")) == str(module)


def test_signature():
    signature = rx.Module.parse(MATMUL).functions["main"]
    assert str(signature) == "@main(%x: f32[n, 4], *, %fc.weight: f32[4, 4]) -> (f32[n, 4])"
    assert (signature.symbols, signature.private, signature.transform_for) == (("n",), False, None)
    assert [o.name for o in signature.outputs] == ["y"]


def test_signature_without_names_or_weights():
    module = rx.Module.parse("func.func private @f(%a: tensor<?xi8>, %p: !relax.param_provider) -> f32")
    signature = module.functions["f"]
    assert str(signature) == "@f(%input0: i8[?], %input1: !relax.param_provider) -> (f32)"
    assert signature.private
    assert not signature.weights


def test_functions_keep_their_order():
    names = [f"f{i}" for i in (3, 1, 2)]
    module = rx.Module.parse("\n".join(f"func.func @{n}() {{ return }}" for n in names))
    assert list(module.functions) == names
    assert repr(module) == "<relaxir.Module: @f3, @f1, @f2>"


def test_run_gives_a_new_module_and_keeps_the_old():
    module = rx.Module.parse(DEAD)
    before = str(module)
    after = module.run("canonicalize")
    assert "relax.exp" not in str(after)
    assert str(module) == before
    assert after.context is module.context or after.context == module.context
    after.verify()


def test_result_of_run_outlives_its_source():
    after = rx.Module.parse(DEAD).run("canonicalize")
    assert str(after.run("cse")) == str(after)


def test_run_keeps_module_attributes_and_locations():
    module = rx.Module.parse('module attributes {relax.vdevices = ["cpu:0"]} {\n' + DEAD + "}", "a.mlir")
    after = module.run("canonicalize")
    assert 'relax.vdevices = ["cpu:0"]' in str(after)
    assert 'loc("a.mlir":2:1)' in str(next(iter(after.ir.body.operations)).location)


@pytest.mark.parametrize("pipeline", ["no-such-pass", "canonicalize,", "cse)", "builtin.module(", "canonicalize{x=1}", ""])
def test_bad_pipeline_text(pipeline: str):
    module = rx.Module.parse(DEAD)
    if not pipeline:
        assert str(module.run(pipeline)) == str(module)
        return
    with pytest.raises(rx.RelaxError):
        module.run(pipeline)


def test_parse_error_has_the_place():
    with pytest.raises(rx.DiagnosticError, match=r"^dir/a\.mlir:2:7: .*expected operation name") as error:
        rx.Module.parse("module {\n  %0 = \n}", "dir/a.mlir")
    assert error.value.location == "dir/a.mlir:2:7"


def test_op_error_has_the_place():
    text = MATMUL.replace(
        '"relax.permute_dims"(%w) {axes = array<i64: 1, 0>}', '"relax.permute_dims"(%w) {axes = array<i64: 1, 1>}'
    )
    with pytest.raises(
        rx.DiagnosticError, match=r"^-:3:8: 'relax.permute_dims' op expected a permutation of 2 axes, got \[1, 1\]$"
    ):
        rx.Module.parse(text)


def test_load_error_names_the_file(tmp_path: Path):
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f() {\n  garbage\n}\n")
    with pytest.raises(rx.DiagnosticError) as error:
        rx.Module.load(path)
    assert error.value.location == f"{path}:2:3"


def test_missing_file(tmp_path: Path):
    with pytest.raises(rx.RelaxError, match=r"^cannot read '.*none\.mlir': No such file or directory$"):
        rx.Module.load(tmp_path / "none.mlir")


def test_unwritable_place(tmp_path: Path):
    with pytest.raises(rx.RelaxError, match=r"^cannot write '.*': No such file or directory$"):
        rx.Module.parse(DEAD).save(tmp_path / "none" / "m.mlir")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"ML\xefR\x06more", "f.mlir: expected MLIR text, got MLIR bytecode"),
        (b"module {\xff}", "f.mlir: expected UTF-8 text, got the byte 0xff at 8"),
        ("module {\ud800}", "f.mlir: expected text without surrogates"),
        (r'module @"a\\" attributes {b = "\"\F0\9F"} {}', r'f.mlir: expected strings in UTF-8, got "\"\F0\9F"'),
        (3, "expected MLIR text, got int"),
        ("module {\n" * 3000 + "}" * 3000, f"f.mlir: expected at most {MAX_NESTING} levels of nesting, got 3000"),
        ("[ -> " * 3000, f"f.mlir: expected at most {MAX_NESTING} levels of nesting, got 3000"),
        ("return %0#2147483648 : f32", "f.mlir: expected a result that an op has, got %0#2147483648"),
        (f"return %a#{'9' * 5000} : f32", f"f.mlir: {'expected a result that an op has, got %a#':9<3000} ... {'9' * 800}"),
    ],
)  # fmt: skip
def test_no_text(text: object, message: str):
    with pytest.raises(rx.RelaxError) as error:
        rx.Module.parse(text, "f.mlir")  # type: ignore[arg-type]
    assert str(error.value) == message


@pytest.mark.parametrize("place", [1 << 31, 1 << 32, -(1 << 32), (1 << 32) + 1, 1 << 70, "0x100000001"])
@pytest.mark.parametrize(
    "text",
    [
        "%1 = llvm.insertvalue %p, %0[PLACE] : !llvm.struct<(ptr, i64)>",
        "%1 = llvm.extractvalue %0[1, PLACE] : !llvm.struct<(ptr, i64)>",
        "%1 = llvm.insertvalue // [0]\n %p, \n%0#0 [ PLACE ] : !llvm.struct<(ptr, i64)>",
        '%1 = "llvm.extractvalue"(%0) <{position = array<i64: PLACE>}> : (!llvm.struct<(ptr, i64)>) -> !llvm.ptr',
        '%1 = "llvm.extractvalue"(%0) <{position = #a}> : (!llvm.struct<(ptr, i64)>) -> !llvm.ptr',
    ],
)
def test_places_that_no_structure_has(text: str, place: int | str):
    """From 2**31 on MLIR reads behind the fields."""
    function = f"""
        #a = array<i64: PLACE>
        func.func @f(%p: !llvm.ptr) attributes {{b = #a, c = [4294967296], d = array<i64: 4294967296>}} {{
          %0 = llvm.mlir.poison : !llvm.struct<(ptr, i64)>
          {text}
          return
        }}"""
    rx.Module.parse(function.replace("PLACE", "0").replace("[1, 0]", "[1]"))
    with pytest.raises(rx.RelaxError, match=f"^-: expected a place that a structure has, got {place}$"):
        rx.Module.parse(function.replace("PLACE", str(place)))


@pytest.mark.parametrize("alignment", [0, 3, 1 << 17, 1 << 31, (1 << 32) - 1])
def test_resources_aligned_to_what_no_memory_is(alignment: int):
    """MLIR's reader ends the process."""
    function = """
        func.func @f() -> tensor<1xf32> {
          %0 = arith.constant dense_resource<r> : tensor<1xf32>
          return %0 : tensor<1xf32>
        }
        {-# dialect_resources: { builtin: { r: "0xALIGNED0000803F" } } #-}"""
    rx.Module.parse(function.replace("ALIGNED", (4).to_bytes(4, "little").hex()))
    with pytest.raises(rx.RelaxError, match=f"^-: expected a resource aligned to a power of two up to 65536, got {alignment}$"):
        rx.Module.parse(function.replace("ALIGNED", alignment.to_bytes(4, "little").hex()))


#: Values of attributes for which the bindings have no class.
UNKNOWN_TO_BINDINGS = [
    "array<ui64: 1>", "array<si8>", "array<i128: 1>", "array<f16: 1.0>", "array<bf16>", "array<f8E4M3FN: 1.0>",
    "[array<ui8: 1>]", "{b = array<ui8: 1>}", "dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>",
    "dense<(1, 2)> : tensor<complex<i32>>", "loc(unknown)", 'loc("a")', 'loc("a.py":1:2)',
    'loc(fused["a", "b"])', 'loc(callsite("a" at "b"))', "[loc(unknown)]",
]  # fmt: skip


@pytest.mark.parametrize("value", UNKNOWN_TO_BINDINGS)
def test_attributes_that_the_bindings_do_not_know(value: str):
    """Anywhere, through passes, compilation and a call."""
    noted = f"relax.noted = {value}"
    executable = rx.compile(rx.Module.parse(f"""
        module attributes {{{noted}}} {{
          func.func @main(%x: tensor<4xf32> {{{noted}}}, %w: tensor<4xf32> {{relax.name = "w", {noted}}})
              -> (tensor<4xf32> {{{noted}}}) attributes {{relax.num_input = 1 : i64, {noted}}} {{
            %0 = "relax.exp"(%w) {{{noted}}} : (tensor<4xf32>) -> tensor<4xf32>
            %1 = "relax.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
            return {{{noted}}} %1 : tensor<4xf32>
          }}
        }}"""))  # fmt: skip
    zeros = np.zeros(4, np.float32)
    executable.bind(executable.prepare({"w": zeros}))
    np.testing.assert_array_equal(executable(zeros), np.ones(4, np.float32))


@pytest.mark.parametrize("value", [v for v in UNKNOWN_TO_BINDINGS if v[0] != "["])
def test_attributes_of_ops_that_the_bindings_do_not_know(value: str):
    with pytest.raises(rx.RelaxError, match=r"'relax.sum' op expected an i64 array for attribute 'axis', got "):
        rx.Module.parse(f"""func.func @main(%x: tensor<4xf32>) {{
          %0 = "relax.sum"(%x) {{axis = {value}}} : (tensor<4xf32>) -> tensor<f32>
          return }}""")


def test_brackets_in_strings_and_comments_do_not_nest():
    text = f'module attributes {{relax.a = "{"(" * 2000}"}} {{}} // {"{" * 2000}'
    assert rx.Module.parse(text).functions == {}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ('@f(%a: tensor<?xf32, {sym = ["n", "m"]}>)', "expected one 'sym' expression for each of 1 dynamic dimensions, got 2"),
        ("@f(%a: tensor<4xf32, 3>)", "expected a dictionary encoding with 'sym' or 'vdevice', got 3 : i64"),
        ('@f(%a: f32 {relax.name = "a"}, %b: f32 {relax.name = "a"})', "expected distinct argument names, got 'a' twice"),
        ("@f(%a: f32 {relax.name = 3})", "expected a string for every relax.name"),
        ("@f() attributes {relax.num_input = 1 : i64}", "expected relax.num_input between 0 and 0, got 1 : i64"),
        ('@f() attributes {relax.num_input = "x"}', 'expected relax.num_input between 0 and 0, got "x"'),
        (
            "@f() attributes {relax.symbol_ranges = {n = []}}",
            "expected relax.symbol_ranges such as {n = [1, 512], m = [0]}, got []",
        ),
        (
            "@f() attributes {relax.symbol_ranges = 3}",
            "expected relax.symbol_ranges such as {n = [1, 512], m = [0]}, got 3 : i64",
        ),
        (
            "@f() attributes {relax.symbol_ranges = {n = [4, 2]}}",
            "expected relax.symbol_ranges such as {n = [1, 512], m = [0]}, got [4, 2]",
        ),
        (
            "@f() attributes {relax.state = 3}",
            "expected relax.state such as {cache = dense<0.0> : tensor<8xf32>}, got 3 : i64",
        ),
        (
            "@f() attributes {relax.state = {c = 1}}",
            "expected relax.state such as {cache = dense<0.0> : tensor<8xf32>}, got {c = 1 : i64}",
        ),
        (
            "@f() attributes {relax.state = {c = dense<0.0> : tensor<4xf32>}}",
            "expected one input and one result named 'c' for relax.state",
        ),
        (
            "@f() attributes {relax.keyword = 3}",
            "expected the names of the last inputs for relax.keyword, got 3 : i64",
        ),
        (
            '@f(%a: f32 {relax.name = "a"}, %b: f32) attributes {relax.keyword = ["a"], relax.num_input = 2}',
            'expected the names of the last inputs for relax.keyword, got ["a"]',
        ),
        ("@f() attributes {relax.transform_for = @g}", "expected a function of the module for relax.transform_for, got @g"),
        (
            "@f() attributes {relax.transform_for = 3}",
            "expected a function, or a list of them, for relax.transform_for, got 3 : i64",
        ),
    ],
)
def test_broken_convention(function: str, message: str):
    with pytest.raises(rx.DiagnosticError) as error:
        rx.Module.parse(f"func.func {function} {{ return }}", "f.mlir")
    assert str(error.value) == f"f.mlir:1:1: 'func.func' op {message}"


@pytest.mark.parametrize("name", ["3", "[5]", "unit", "@f"])
@pytest.mark.parametrize(
    "function",
    [
        "@f(%a: f32 {relax.name = NAME}) { return }",
        "@f(%a: f32) -> (f32 {relax.name = NAME}) { return %a : f32 }",
        'private @f(index {relax.name = NAME}) -> tensor<4xf32> attributes {relax.callback = "get_param"}',
        "@f(%a: tensor<4xf32> {relax.name = NAME}) attributes {relax.state = {c = dense<0.0> : tensor<4xf32>}} { return }",
        "@f(%a: f32 {relax.name = NAME}) attributes {relax.transform_for = @g} { return }\n"
        "func.func @g(%a: f32) attributes {relax.num_input = 0} { return }",
        "@f(%a: tuple<f32, f32> {relax.bundled = [{relax.name = NAME}, {}]}) { return }",
    ],
)
def test_a_name_that_is_no_string_is_refused_wherever_it_is(function: str, name: str):
    with pytest.raises(rx.DiagnosticError, match=r"expected a string for every relax\.name"):
        rx.Module.parse(f"func.func {function.replace('NAME', name)}")


def test_state_of_a_type_with_an_encoding_is_compared():
    plain, placed = "tensor<4xf32>", 'tensor<4xf32, {vdevice = "cpu:0"}>'
    with pytest.raises(rx.RelaxError, match="expected one type for the argument, the result and the first value of state 'c'"):
        rx.Module.parse(STATE.format(state=f"{{c = dense<0.0> : {placed}}}", visibility="").replace(plain, placed))


STATE = """
func.func {visibility} @f(%c: tensor<4xf32> {{relax.name = "c"}}, %w: tensor<4xf32> {{relax.name = "w"}})
    -> (tensor<4xf32> {{relax.name = "c"}}, tensor<4xf32> {{relax.name = "w"}})
    attributes {{relax.num_input = 1 : i64, relax.state = {state}}} {{
  return %c, %c : tensor<4xf32>, tensor<4xf32>
}}"""


@pytest.mark.parametrize(
    ("state", "visibility", "message"),
    [
        ("{c = dense<0.0> : tensor<4xf32>}", "", None),
        ("{c = dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>}", "", None),
        ("{w = dense<0.0> : tensor<4xf32>}", "", "expected one input and one result named 'w' for relax.state"),
        ("{c = dense<0.0> : tensor<4xf32>}", "private", "expected relax.state of public functions only"),
        (
            "{c = dense<0.0> : tensor<5xf32>}",
            "",
            "expected one type for the argument, the result and the first value of state 'c', "
            "got tensor<4xf32>, tensor<4xf32> and tensor<5xf32>",
        ),
    ],
)
def test_state_is_an_input_and_a_result(state: str, visibility: str, message: str | None):
    text = STATE.format(state=state, visibility=visibility)
    if message is None:
        assert "relax.state = {c" in str(rx.Module.parse(text))
        return
    with pytest.raises(rx.DiagnosticError) as error:
        rx.Module.parse(text, "f.mlir")
    assert str(error.value) == f"f.mlir:2:1: 'func.func' op {message}"


@pytest.mark.parametrize("ranges", ["{}", "{n = [0]}", "{n = [1, 512], m = [2, -1]}"])
def test_symbol_ranges(ranges: str):
    rx.Module.parse(f"func.func @f() attributes {{relax.symbol_ranges = {ranges}}} {{ return }}")


def test_all_broken_conventions_are_reported():
    text = "func.func @f() attributes {relax.num_input = 1 : i64} { return }\nfunc.func @g(%a: f32 {relax.name = 3}) { return }"
    with pytest.raises(rx.DiagnosticError) as error:
        rx.Module.parse(text)
    assert [d[1] for d in error.value.diagnostics] == ["-:1:1", "-:2:1"]


def test_verify_after_a_change_by_hand():
    module = rx.Module.parse(DEAD)
    module.verify()
    from relaxir.dialect.bindings import ir

    with module.context:
        next(iter(module.ir.body.operations)).attributes["relax.num_input"] = ir.Attribute.parse("7 : i64")
    with pytest.raises(rx.DiagnosticError, match=r"expected relax\.num_input between 0 and 1, got 7"):
        module.verify()


def test_show(capsys: pytest.CaptureFixture[str]):
    rx.Module.parse(MATMUL).show()
    assert (
        capsys.readouterr().out
        == """\
func @main(%x: f32[n, 4], *, %fc.weight: f32[4, 4]) -> (f32[n, 4]) {
  %0: f32[4, 4] = permute_dims(%fc.weight, axes=[1, 0])
  %1: f32[n, 4] = matmul(%x, %0)
  return %1
}
"""
    )


def test_show_control_flow_and_calls(capsys: pytest.CaptureFixture[str]):
    rx.Module.parse("""\
func.func @main(%c: i1, %x: tensor<2xf32>) -> tensor<2xf32> {
  %k = "relax.constant"() {value = dense<[1.5, -2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %big = "relax.constant"() {value = dense<"0x00010203040506070809"> : tensor<10xi8>} : () -> tensor<10xi8>
  %r = scf.if %c -> (tensor<2xf32>) {
    %y = func.call @g(%k) : (tensor<2xf32>) -> tensor<2xf32>
    scf.yield %y : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
func.func private @outside(tensor<2xf32, {vdevice = "cuda:0"}>) -> ()
""").show()
    assert (
        capsys.readouterr().out
        == """\
func @main(%input0: i1, %input1: f32[2]) -> (f32[2]) {
  %0: f32[2] = constant(value=[1.5, -2.0])
  %1: i8[10] = constant(value=...)
  %2: f32[2] = scf.if(%input0) {
    %3: f32[2] = @g(%0)
    yield %3
  } else {
    yield %input1
  }
  return %2
}

private func @g(%input0: f32[2]) -> (f32[2]) {
  return %input0
}

extern func @outside(f32[2] on cuda:0) -> ()
"""
    )


def test_public_names():
    assert rx.__all__ == sorted(rx.__all__)
    assert set(rx.__all__) <= set(dir(rx))
    with pytest.raises(AttributeError, match="no attribute 'from_jax'"):
        _ = rx.from_jax


@pytest.mark.parametrize("name", rx.__all__)
def test_public_name_exists(name: str):
    if name in ("from_torch", "save_weights"):
        pytest.importorskip("torch")
    value = getattr(rx, name)
    assert callable(value) or name == "transformers"  # a module, which imports its own only when it is asked for
    assert value is getattr(rx, name)
    assert value.__doc__


def test_import_is_light():
    """Users of a compiled artifact pay neither for MLIR nor for torch."""
    code = "import sys, relaxir; print([m for m in sys.modules if m.split('.')[0] in ('torch', 'torch_mlir', 'llvmlite')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"
