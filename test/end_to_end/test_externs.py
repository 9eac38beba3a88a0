"""Functions of other libraries in compiled code: what they get, errors, artifacts that name them, weights that they prepare."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.communicator import ThreadRank, thread_ranks
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.profiling import profile
from relaxir.runtime.threads import find_runtime
from relaxir.tools.cli import run as run_command
from support.c_compiler import c_compiler
from support.extern_library import extern_library, scaling

Array = np.ndarray[Any, Any]
X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extern_library(tmp_path_factory.mktemp("acme"))


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
def test_sizes_that_are_symbols(library: Path, rows: int, checked: bool) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
    exe = rx.compile(scaling(library), checked=checked)
    np.testing.assert_array_equal(exe(x), x * np.float32(2.5) + x)


@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 3, 5)])
@pytest.mark.parametrize(
    ("dtype", "told"),
    [(np.float32, (2, 32)), (ml_dtypes.bfloat16, (4, 16)), (np.int8, (0, 8)), (np.uint16, (1, 16)), (np.bool_, (6, 8)),
     (np.float16, (2, 16)), (np.float64, (2, 64)), (ml_dtypes.float8_e4m3fn, (10, 8))],
)  # fmt: skip
def test_dtypes_and_several_results(library: Path, shape: tuple[int, ...], dtype: Any, told: tuple[int, int]) -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", shape, dtype)
        results = [(shape, dtype), ((), "i64"), ((2,), "i32")]
        b.output(*b.call_extern("acme_copy", [x], results, library=library))
    module = b.build()
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    for given in (rx.compile(module)(x), rx.evaluate(module, "main", x)):
        copied, count, type_ = given
        assert copied.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(copied, np.float64), np.asarray(x, np.float64))
        assert (int(count), tuple(type_)) == (x.size, told)


def test_arguments_behind_the_tensors(library: Path) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, k = b.input("x", ("n", 4)), b.input("k", (1,), "i8")
        (y,) = b.call_extern("acme_mix", [x, b.relu(x), k], [(("n", 4), "f32")], library=library, arguments=[-3, True, "minus"])
        b.output(b.negative(y))
    module, k = b.build(), np.array([-5], np.int8)
    (expected,) = rx.evaluate(module, "main", X, k)
    np.testing.assert_array_equal(expected, X - 5 * X - 6)
    np.testing.assert_array_equal(rx.compile(module)(X, k), expected)


@pytest.mark.parametrize("dtype", ["i64", "i8", "ui8", "i1", "i32"])
def test_arguments_that_are_known_at_run_time(library: Path, dtype: str) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, number, factor = b.input("x", ("n", 4)), b.input("number", (), dtype), b.input("factor", ())
        (y,) = b.call_extern("acme_scale", [x], [(("n", 4), "f32")], library=library, arguments=[factor])
        arguments = [number, b.shape_value("n"), "minus"]
        k = b.constant(np.array([2], np.int8))
        b.output(*b.call_extern("acme_mix", [x, y, k], [(("n", 4), "f32")], library=library, arguments=arguments))
    module = b.build()
    number = np.array(200).astype(numpy_dtype(dtype))
    expected = -(X + 2 * X * 3 + 2 * int(number))
    for got in (rx.compile(module)(X, number, np.float32(3)), rx.evaluate(module, "main", X, number, np.float32(3))[0]):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_no_inputs_and_sizes_that_are_expressions(library: Path) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.input("x", ("n", 4))
        b.output(*b.call_extern("acme_iota", [], [(("n * 2 + 1",), "i32")], library=library, arguments=[5]))
    module = b.build()
    np.testing.assert_array_equal(rx.compile(module)(X), np.arange(5, 10))
    np.testing.assert_array_equal(rx.evaluate(module, "main", X)[0], np.arange(5, 10))


@pytest.mark.parametrize("checked", [False, True])
def test_an_error_ends_the_call(library: Path, checked: bool) -> None:
    exe = rx.compile(scaling(library, "acme_root"), checked=checked)
    exe(X)
    with pytest.raises(rx.RelaxError, match=r"extern_library\.py:\d+.*'relax\.call_extern' op expected 'acme_root' of '.*lib"
                                            r"acme\.so' to return 0, got an error"):  # fmt: skip
        exe(X - 1)
    exe(X)


def test_in_control_flow(library: Path) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, flag = b.input("x", (2, 4)), b.input("flag", (), "i1")

        def scaled(factor: float) -> Any:
            return b.call_extern("acme_scale", [x], [((2, 4), "f32")], library=library, arguments=[factor])[0]

        def step(value: Any, row: Any) -> Any:
            return b.call_extern("acme_scale", [value], [((2, 4), "f32")], library=library, arguments=[2.0])[0], row

        chosen = b.cond(flag, lambda: scaled(3.0), lambda: scaled(-1.0))
        last, _ = b.scan(step, chosen, b.constant([1.0, 2.0, 3.0]))
        b.output(last)
    module = b.build()
    exe = rx.compile(module)
    for flag in (True, False):
        expected = X * (24 if flag else -8)
        np.testing.assert_array_equal(exe(X, np.array(flag)), expected)
        np.testing.assert_array_equal(rx.evaluate(module, "main", X, np.array(flag))[0], expected)


def test_buffers_are_apart(library: Path) -> None:
    """Though the arena gives memory again, and values end with the call that reads them last."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 4))
        for _ in range(3):
            y, z = b.call_extern("acme_apart", [x, b.exp(x)], [(("n", 4), "f32")] * 2, library=library)
            x = b.tanh(b.add(y, z))
        b.output(*b.call_extern("acme_apart", [x, x], [(("n", 4), "f32")] * 2, library=library))
    module = b.build()
    for got, wanted in zip(rx.compile(module)(X), rx.evaluate(module, "main", X), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_state_is_read_before_it_is_written(library: Path) -> None:
    module = rx.Module.parse(f"""
func.func @main(%s: tensor<4xf32> {{relax.name = "s"}}, %x: tensor<4xf32> {{relax.name = "x"}})
    -> (tensor<4xf32> {{relax.name = "s"}}, tensor<4xf32> {{relax.name = "y"}})
    attributes {{relax.num_input = 2 : i64, relax.state = {{s = dense<1.0> : tensor<4xf32>}}}} {{
  %a, %b = "relax.call_extern"(%s, %x) {{symbol = "acme_apart", library = "{library}",
     operandSegmentSizes = array<i32: {", ".join("110000000000000000000000")}>,
     resultSegmentSizes = array<i32: {", ".join("110000000000")}>}}
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %n = "relax.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %n, %a : tensor<4xf32>, tensor<4xf32>
}}""")
    exe, x = rx.compile(module, externs={"acme_apart": library}), np.full(4, 2, np.float32)
    np.testing.assert_array_equal([exe(x)[0] for _ in range(3)], [1, 3, 5])


def test_one_that_nobody_reads_is_called_all_the_same(library: Path) -> None:
    """As what else may fail is: ``evaluate`` fails, too."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (2, 4))
        b.call_extern("acme_root", [x], [((2, 4), "f32")], library=library)
        b.output(b.relu(x))
    exe = rx.compile(b.build())
    np.testing.assert_array_equal(exe(X), X)
    with pytest.raises(rx.RelaxError, match="acme_root"):
        exe(X - 9)


# -- weights ------------------------------------------------------------------------------------------------------------


def weighted(library: Path, symbol: str = "acme_scale", **more: Any) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (2, 4)), b.weight("w", (2, 4))
        (y,) = b.call_extern(symbol, [w], [((2, 4), "f32")], library=library, arguments=[2.0], **more)
        b.output(b.add(x, y))
    return b.build()


def test_a_weight_is_prepared_by_a_function(library: Path, tmp_path: Path) -> None:
    exe = rx.compile(weighted(library))
    assert [s.symbol is not None for s in exe.manifest.steps] == [True]
    assert next(iter(exe.manifest.prepared_weights.values())).ops == ("call_extern",)
    exe.bind(exe.prepare({"w": X}, tmp_path / "w.safetensors"))
    np.testing.assert_array_equal(exe(X), X + 2 * X)


def test_an_error_ends_the_preparation(library: Path) -> None:
    exe = rx.compile(weighted(library, "acme_root"))
    with pytest.raises(rx.RelaxError, match=r"preparation of w\.call_extern.*'acme_root' of '.*' to return 0, got an error"):
        exe.prepare({"w": X - 1})


def test_another_version_has_another_fingerprint(library: Path) -> None:
    first, second = rx.compile(weighted(library, version="1")), rx.compile(weighted(library, version="2"))
    assert first.fingerprint != second.fingerprint
    with pytest.raises(rx.RelaxError, match="fingerprint"):
        second.bind(first.prepare({"w": X}))


def test_a_library_that_was_moved_takes_the_same_weights(library: Path, tmp_path: Path) -> None:
    moved = shutil.copy(library, tmp_path / library.name)
    first, second = rx.compile(weighted(library)), rx.compile(weighted(moved))
    second.bind(first.prepare({"w": X}))
    np.testing.assert_array_equal(second(X), first.bind(first.prepare({"w": X}))(X))


def test_a_barrier_keeps_a_function_in_inference(library: Path) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (2, 4)), b.stop_lift_params(b.weight("w", (2, 4)))
        (y,) = b.call_extern("acme_scale", [w], [((2, 4), "f32")], library=library, arguments=[2.0])
        b.output(b.add(x, y))
    exe = rx.compile(b.build())
    assert exe.manifest.is_identity
    np.testing.assert_array_equal(exe.bind(exe.prepare({"w": X}))(X), X + 2 * X)


def test_a_branch_keeps_the_function_that_may_fail(library: Path) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, flag, w = b.input("x", (2, 4)), b.input("flag", (), "i1"), b.weight("w", (2, 4))

        def scaled() -> Any:
            return b.call_extern("acme_root", [w], [((2, 4), "f32")], library=library)[0]

        b.output(b.add(x, b.cond(flag, scaled, lambda: b.relu(w))))
    exe = rx.compile(b.build())
    assert "unsafe-in-branch" in str(exe.report)
    exe.bind(exe.prepare({"w": X - 1}))
    np.testing.assert_array_equal(exe(X, np.array(False)), X + np.maximum(X - 1, 0))
    with pytest.raises(rx.RelaxError, match="acme_root"):
        exe(X, np.array(True))


# -- artifacts ------------------------------------------------------------------------------------------------------------

_RUN = """
import sys
import numpy as np
import relaxir as rx
exe = rx.load(sys.argv[1], externs={"acme_scale": sys.argv[2]} if len(sys.argv) > 2 else None)
assert "torch_mlir" not in sys.modules
print(exe(np.ones((1, 4), np.float32)).tolist())
"""


def run(*arguments: object) -> str:
    done = subprocess.run([sys.executable, "-c", _RUN, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def test_an_artifact_in_a_new_process(tmp_path: Path) -> None:
    library = extern_library(tmp_path)
    rx.compile(scaling(library)).save(tmp_path / "model.relax")
    assert [(e.symbol, e.library) for e in rx.load(tmp_path / "model.relax").manifest.externs] == [("acme_scale", str(library))]
    assert run(tmp_path / "model.relax") == "[[3.5, 3.5, 3.5, 3.5]]\n"
    assert run(tmp_path / "model.relax", extern_library(tmp_path, "libother.so", "1")) == "[[4.5, 4.5, 4.5, 4.5]]\n"


def test_an_artifact_without_its_library(tmp_path: Path) -> None:
    library = extern_library(tmp_path)
    rx.compile(scaling(library)).save(tmp_path / "model.relax")
    library.rename(tmp_path / "libmoved.so")
    told = run(tmp_path / "model.relax")
    assert f"expected the library '{library}', which cannot be loaded" in told
    assert "(for 'acme_scale': externs={'acme_scale': ...} says where another one is)" in told
    assert run(tmp_path / "model.relax", tmp_path / "libmoved.so") == "[[3.5, 3.5, 3.5, 3.5]]\n"


@pytest.mark.parametrize(
    ("externs", "message"),
    [
        ({"acme_scale": "libm.so.6"}, r"expected the function 'acme_scale' in 'libm\.so\.6', got none of that name"),
        ({"acme_none": "libm.so.6"}, r"expected externs for functions that it calls \(acme_scale\), got acme_none"),
        ({"acme_scale": 3}, "expected the path of a library for 'acme_scale', got int"),
        ({1: "libm.so.6"}, "expected names of functions in externs, got int"),
        (["acme_scale"], "expected externs as a mapping from functions to libraries, got list"),
    ],
)
def test_externs_that_do_not_fit(library: Path, tmp_path: Path, externs: Any, message: str) -> None:
    rx.compile(scaling(library)).save(tmp_path / "model.relax")
    with pytest.raises(rx.RelaxError, match=message):
        rx.load(tmp_path / "model.relax", externs=externs)


def test_on_the_command_line(library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, artifact, out = tmp_path / "m.mlir", tmp_path / "m.relax", tmp_path / "out.npz"
    scaling("libtrusted.so").save(model)
    model.write_text(model.read_text().replace("libtrusted", "libother"))  # this process has named libtrusted.so
    assert run_command(["compile", str(model), "-o", str(artifact)]) == 1
    assert "expected a function that this program names, got 'acme_scale' of 'libother.so'" in capsys.readouterr().err
    named = ["--extern", f"acme_scale={library}"]
    assert run_command(["compile", str(model), "-o", str(artifact), *named]) == 0
    assert "calls acme_scale of 'libother.so'" in capsys.readouterr().out
    assert run_command(["run", str(artifact), "--random", "--dim", "n=2", "-o", str(out)]) == 1
    assert "expected the library 'libother.so', which cannot be loaded" in capsys.readouterr().err
    assert run_command(["run", str(artifact), "--random", "--dim", "n=2", "-o", str(out), *named]) == 0
    assert run_command(["run", str(artifact), "--random", "--dim", "n=2", "-o", str(out), "--extern", "acme_scale"]) == 2
    assert "expected --extern FUNCTION=LIBRARY, got 'acme_scale'" in capsys.readouterr().err


# -- several processes, threads and profiles ----------------------------------------------------------------------------


def test_several_ranks_call_it(library: Path) -> None:
    """The table of functions comes behind that of the ranks."""
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("n", 64)), b.weight("w", (64, 64))
        v = b.weight("v", (64, 64))
        h = b.relu(b.matmul(x, w))
        (y,) = b.call_extern("acme_scale", [b.matmul(h, v)], [(("n", 64), "f32")], library=library, arguments=[2.0])
        b.output(y)
    module = b.build()
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((64, 64)).astype(np.float32) for name in "wv"}
    x = rng.standard_normal((3, 64)).astype(np.float32)
    (expected,) = rx.evaluate(module, "main", x, weights=weights)

    def one(_: ThreadRank) -> Array:
        exe = rx.compile(module, mesh=rx.Mesh(tp=2))
        return exe.bind(exe.prepare(weights))(x)

    for got in thread_ranks(2, one):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)


def test_calls_of_several_threads(library: Path) -> None:
    exe = rx.compile(scaling(library))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: exe(X + i), range(32)))
    for i, got in enumerate(found):
        np.testing.assert_array_equal(got, (X + i) * np.float32(2.5) + (X + i))


def test_a_profile_has_its_time(library: Path) -> None:
    exe = rx.compile(scaling("libelsewhere.so"), externs={"acme_scale": library})
    (kernel,) = [k for k in profile(exe, {"x": X}, seconds=0.01).kernels if k.kind == "extern"]
    assert kernel.ops == ("relax.call_extern",)


_MAIN = r"""
#include <stdio.h>
#include "module.h"
extern int acme_scale();
int main(void) {
  float x[4] = {1, 2, 3, 4}, y[4];
  _Alignas(64) static char arena[1 << 16];
  void *tensors[] = {x, y}, *externs[] = {(void *)acme_scale};
  int64_t symbols[] = {1};
  int64_t status = relaxir_main(tensors, symbols, arena, sizeof arena, externs);
  printf("%d %g %g %g %g\n", (int)status, y[0], y[1], y[2], y[3]);
  return 0;
}
"""


def test_deployed_from_c(library: Path, tmp_path: Path) -> None:
    rx.compile(scaling(library)).save(tmp_path / "model.relax")
    (tmp_path / "main.c").write_text(_MAIN)
    folder = tmp_path / "model.relax"
    assert "externs[0]: acme_scale, of '" in (folder / "module.h").read_text()
    threads = find_runtime()
    libraries = [*map(str, [folder / "module.so", library, *([] if threads is None else [threads])])]
    libraries += [f"-Wl,-rpath,{':'.join(str(Path(path).parent) for path in libraries)}"]
    command = [c_compiler(), f"-I{folder}", str(tmp_path / "main.c"), *libraries, "-o", str(tmp_path / "main")]
    subprocess.run(command, check=True)
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    assert done.stdout == "0 3.5 7 10.5 14\n"


def test_a_gpu_is_refused(library: Path) -> None:
    message = "expected code for CPUs, whose memory a function of another library reads, got code for a GPU"
    with pytest.raises(rx.RelaxError, match=f"extern_library.*{message}"):
        rx.compile(scaling(library), "cuda:sm_80", device="emulated")


def test_builder_refuses_what_is_no_name() -> None:
    with pytest.raises(rx.RelaxError, match="expected the name of a C function, got 'acme::scale'"):
        scaling("libacme.so", "acme::scale")
