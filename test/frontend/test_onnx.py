"""ONNX models: what an import keeps of names, sizes and weights, against ONNX Runtime, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from relaxir import backend
from relaxir.tools import cli
from relaxir.weights import Checkpoint
from support.onnx_models import MODELS, model

_SIZES = {"batch": 5, "n": 4, "length": 21}


def _inputs(proto: onnx.ModelProto) -> dict[str, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(0)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for given in proto.graph.input:
        shape = [_SIZES[d.dim_param] if d.dim_param else d.dim_value for d in given.type.tensor_type.shape.dim]
        kind = helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
        numbers = generator.standard_normal(shape)
        found[given.name] = np.asarray(numbers > 0 if kind == np.bool_ else numbers, kind)
    return found


def _by_runtime(proto: onnx.ModelProto, inputs: dict[str, Any]) -> list[Any]:
    return onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)


def _own_function(proto: onnx.ModelProto) -> onnx.ModelProto:
    """ONNX Runtime wants types of results."""
    for value in proto.graph.output:
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    return proto


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    """From the file: import, preparation from the same file, a call with sizes that the file leaves open."""
    proto = _own_function(MODELS[name]())
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    inputs = _inputs(proto)
    executable = rx.compile(rx.from_onnx(path))
    if executable.manifest.raw_weights:
        executable.bind(executable.prepare(path, tmp_path / "prepared.safetensors"))
    found = executable(**inputs)
    wanted = _by_runtime(proto, inputs)
    for got, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        # Sums in another order: a few units in the last place of the largest term.
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_names_of_inputs_weights_results_and_sizes_are_the_models() -> None:
    (signature,) = rx.from_onnx(MODELS["perceptron"]()).functions.values()
    assert str(signature) == "@main(%x: f32[batch, 4], *, %w0: f32[8, 4], %b0: f32[8], %w1: f32[8, 3]) -> (f32[batch, 3])"
    assert [o.name for o in signature.outputs] == ["y"]


def test_a_value_may_be_several_results() -> None:
    inputs = {"x": (TensorProto.FLOAT, [2])}
    proto = model([helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y.1"])], inputs, ["y", "y", "y.1"])
    module = rx.from_onnx(proto)
    assert [o.name for o in module.functions["main"].outputs] == ["y", "y.2", "y.1"]
    x = np.array([1, -2], np.float32)
    for found, wanted in zip(rx.compile(module)(x), (-x, -x, abs(x)), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_sizes_without_a_name_are_symbols_of_their_own() -> None:
    proto = model([helper.make_node("Exp", ["x"], ["y"])], {"x": (TensorProto.FLOAT, [None, 4])}, ["y"])
    (signature,) = rx.from_onnx(proto).functions.values()
    assert str(signature.inputs[0]) == "f32[x_0, 4]"


def test_nodes_are_locations() -> None:
    text = rx.from_onnx(MODELS["perceptron"]()).ir.operation.get_asm(enable_debug_info=True)
    assert 'loc("first"' in text


def test_external_data_is_read_from_beside_the_model(tmp_path: Path) -> None:
    proto = MODELS["perceptron"]()
    inputs = _inputs(proto)
    wanted = backend.run_model(proto, inputs)
    path = tmp_path / "model.onnx"
    onnx.save_model(proto, path, save_as_external_data=True, size_threshold=0)
    executable = rx.compile(rx.from_onnx(path))
    executable.bind(executable.prepare(path))
    np.testing.assert_array_equal(executable(**inputs), wanted[0])


def test_external_data_is_prepared_as_a_stream(tmp_path: Path) -> None:
    """A layer's weight is in memory at a time, and what is written is what prepares from arrays."""
    rng, side, layers = np.random.default_rng(0), 64, 8
    arrays = {f"w{i}": rng.standard_normal((side, side), np.float32) for i in range(layers)}
    x = helper.make_tensor_value_info("x0", TensorProto.FLOAT, ["n", side])
    y = helper.make_tensor_value_info(f"x{layers}", TensorProto.FLOAT, ["n", side])
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(layers)]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    proto = helper.make_model(helper.make_graph(nodes, "layers", [x], [y], weights))
    path = tmp_path / "model.onnx"
    onnx.save_model(proto, path, save_as_external_data=True, size_threshold=0, location="model.data")
    assert path.stat().st_size < arrays["w0"].nbytes < (tmp_path / "model.data").stat().st_size / 7
    executable = rx.compile(rx.from_onnx(path))
    report = executable.prepare(path, tmp_path / "streamed.safetensors")
    executable.prepare(arrays, tmp_path / "arrays.safetensors")
    streamed, other = (Checkpoint(tmp_path / f"{name}.safetensors") for name in ("streamed", "arrays"))
    assert all(streamed.get(name).tobytes() == other.get(name).tobytes() for name in other)
    assert report.peak_bytes <= report.predicted_peak_bytes <= 2 * arrays["w0"].nbytes + 4096
    (tmp_path / "model.data").write_bytes((tmp_path / "model.data").read_bytes()[:-1])
    with pytest.raises(rx.RelaxError, match=r"expected 16384 bytes of 'w7' at 114688 of .*, got fewer"):
        executable.prepare(path, tmp_path / "cut.safetensors")


def _in_hub_cache(folder: Path, under: str, data: str = "blob-of-data") -> tuple[Path, onnx.ModelProto]:
    """The perceptron as the Hugging Face cache stores it: all files of a revision are links to blobs."""
    proto, repository = MODELS["perceptron"](), folder / "models--org--m"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / "0123" / under
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    onnx.save_model(proto, blobs / "model", save_as_external_data=True, size_threshold=0, location="model.onnx_data")
    (blobs / "model.onnx_data").rename(blobs / "blob-of-data")
    up = "../../" + "../" * len(Path(under).parts)
    (snapshot / "model.onnx").symlink_to(f"{up}blobs/model")
    (snapshot / "model.onnx_data").symlink_to(f"{up}blobs/{data}")
    return snapshot / "model.onnx", MODELS["perceptron"]()


@pytest.mark.parametrize("under", ["", "onnx"])
def test_external_data_may_be_links_to_blobs_of_a_hugging_face_cache(under: str, tmp_path: Path) -> None:
    path, proto = _in_hub_cache(tmp_path, under)
    inputs = _inputs(proto)
    executable = rx.compile(rx.from_onnx(path))
    executable.bind(executable.prepare(path))
    np.testing.assert_array_equal(executable(**inputs), backend.run_model(proto, inputs)[0])


@pytest.mark.parametrize("data", ["../refs/main", "../../secret", "link"])
def test_links_of_a_hugging_face_cache_lead_to_its_blobs_alone(data: str, tmp_path: Path, perceptron: rx.Executable) -> None:
    path, _ = _in_hub_cache(tmp_path, "", data)
    secret = (tmp_path / "models--org--m" / "blobs" / data).absolute()
    if data == "link":
        secret.symlink_to("../../secret")
        secret = tmp_path / "secret"
    secret.parent.mkdir(exist_ok=True)
    secret.resolve().write_bytes(b"0" * 4096)
    with pytest.raises(rx.RelaxError, match=r"inside of the model's folder, got 'model\.onnx_data'"):
        perceptron.prepare(path)


@pytest.fixture(scope="module")
def perceptron() -> rx.Executable:
    return rx.compile(rx.from_onnx(MODELS["perceptron"]()))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "../weights"}, "expected external data of 'w0' inside of the model's folder, got '../weights'"),
        ({"location": "a/../w"}, "expected external data of 'w0' inside of the model's folder, got 'a/../w'"),
        ({"location": "../../blobs/w"}, "expected external data of 'w0' inside of the model's folder, got '../../blobs/w'"),
        ({"location": "/etc/passwd"}, "expected external data of 'w0' inside of the model's folder, got '/etc/passwd'"),
        ({"location": "w", "length": "7"}, "expected 128 bytes of external data of 'w0', got 7"),
        ({"location": "w", "offset": "-3"}, "expected a number of bytes as offset of the external data of 'w0', got '-3'"),
        ({"location": "w"}, "expected 128 bytes of 'w0' at 0"),
    ],
)
def test_external_data_that_is_not_there_is_refused(
    entries: dict[str, str], message: str, tmp_path: Path, perceptron: rx.Executable
) -> None:
    proto = MODELS["perceptron"]()
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    (tmp_path / "w").write_bytes(b"short")
    with pytest.raises(rx.RelaxError) as error:
        perceptron.prepare(path)
    assert message in str(error.value)


def _with(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    proto = MODELS["perceptron"]()
    change(proto)
    return proto


def _older(proto: onnx.ModelProto) -> None:
    """Of an operator set that is converted."""
    proto.opset_import[0].version = 6


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (onnx.ModelProto(), "expected an ONNX model, '<onnx>' has no graph"),
        (_with(lambda p: p.ClearField("opset_import")), "has no operator set"),
        (_with(lambda p: p.graph.node[0].input.__setitem__(0, "z")),
         "1 x Gemm: expected a value that an earlier node gives, got 'z'"),
        (_with(lambda p: setattr(p.graph.node[1], "op_type", "Multinomial")), "1 x Multinomial: no relax form"),
        (_with(lambda p: p.graph.input[0].ClearField("type")), "expected tensors as inputs, got 'x' of no type"),
        (_with(lambda p: setattr(p.graph.input[0].type.tensor_type, "elem_type", TensorProto.STRING)),
         "expected an element type with numbers, got STRING"),
        (_with(lambda p: p.graph.input[0].type.tensor_type.ClearField("shape")), "expected inputs of known rank, got 'x'"),
        (_with(lambda p: p.graph.initializer[0].dims.__setitem__(0, -1)),
         "expected dimensions of 0 or more, got [-1, 4] of 'w0'"),
        (_with(lambda p: p.MergeFromString(b"\x12\x01\xff")),
         "expected names in UTF-8, '<onnx>' has b'\\xff' as producer_name"),
        (_with(lambda p: (_older(p), p.graph.node[1].input.__setitem__(0, "z"))),
         "expected a model that can be converted from operator set 6, '<onnx>': Input z is undefined!"),
        (_with(lambda p: (_older(p), setattr(p.graph.node[0], "domain", "nobody"))),
         "expected a model that can be converted from operator set 6, '<onnx>': [TypeInferenceError] "),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_said(proto: onnx.ModelProto, message: str) -> None:
    with pytest.raises(rx.RelaxError) as error:
        rx.from_onnx(proto)
    assert message in str(error.value)


def test_all_that_has_no_relax_form_is_said_at_once() -> None:
    nodes = [
        helper.make_node("Multinomial", ["x"], ["a"], name="first"),
        helper.make_node("StringSplit", ["x"], ["b"], name="second"),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    with pytest.raises(rx.RelaxError) as error:
        rx.from_onnx(model(nodes, {"x": (TensorProto.FLOAT, [3])}, ["y"]))
    assert [line.strip() for line in str(error.value).splitlines()[1:]] == [
        "1 x Multinomial: no relax form", "at <onnx>:1 in first", "1 x StringSplit: no relax form", "at <onnx>:2 in second",
    ]  # fmt: skip


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(rx.RelaxError, match=r"expected an ONNX model, '.*' is none"):
        rx.from_onnx(path)


def test_inputs_that_are_shapes_or_axes_are_known_when_a_model_is_run() -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    proto = model(nodes, {"x": (TensorProto.FLOAT, ["n"]), "shape": (TensorProto.INT64, [2])}, ["y"])
    with pytest.raises(rx.RelaxError, match="expected numbers known at import, got 'shape', computed from 'shape'"):
        rx.from_onnx(proto)
    prepared = backend.prepare(proto)
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, -1]):
        (found,) = prepared.run([x, np.array(shape)])
        np.testing.assert_array_equal(found, x.reshape(shape))


def test_one_node_runs() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    (found,) = backend.run_node(node, [np.zeros((4, 2), np.float32)])
    np.testing.assert_array_equal(found, np.full((4, 2), 0.25, np.float32))


def test_the_sign_of_no_number() -> None:
    x = np.array([np.nan, -0.0, -np.inf, 2], np.float32)
    (found,) = backend.run_node(helper.make_node("Sign", ["x"], ["y"]), [x])
    np.testing.assert_array_equal(found, np.sign(x))


def test_devices_that_are_not_there_are_refused() -> None:
    assert backend.supports_device("CPU:0")
    with pytest.raises(rx.RelaxError, match="expected device CPU, got 'CUDA'"):
        backend.prepare(MODELS["sizes"](), "CUDA")


def test_weights_of_four_bits_stay_so() -> None:
    manifest = rx.compile(rx.from_onnx(MODELS["quantized"]())).manifest
    codes = manifest.raw_weights["q"].array
    assert codes.nbytes == 64 * 32 // 2
    assert sum(w.array.nbytes for w in manifest.prepared_weights.values()) < 64 * 32  # a byte for each would be as many


@pytest.mark.parametrize(
    ("equation", "shapes", "products"),
    [
        ("bqhd,bkhd->bhqk", [(2, 4, 3, 5), (2, 6, 3, 5)], 1),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (7, 4, 5)], 1),
        ("abcd,cdef,e->abf", [(2, 3, 4, 5), (4, 5, 6, 7), (6,)], 2),
        ("ii,ik->k", [(3, 3), (3, 2)], 1),
        ("i,j->ij", [(3,), (4,)], 0),
    ],
)
def test_einsum_is_a_product_of_matrices_where_it_sums(equation: str, shapes: list[tuple[int, ...]], products: int) -> None:
    names = [f"x{i}" for i in range(len(shapes))]
    arrays = [np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)]
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    proto = model([node], {n: (TensorProto.FLOAT, s) for n, s in zip(names, shapes, strict=True)}, ["y"])
    assert str(rx.from_onnx(proto)).count("relax.matmul") == products
    # Sums of up to 20 products in another order.
    np.testing.assert_allclose(backend.run_model(proto, arrays)[0], np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)


def test_einsum_takes_diagonals_of_symbolic_sizes() -> None:
    node = helper.make_node("Einsum", ["x0", "x1"], ["y"], equation="bii,ik->bik")
    proto = model([node], {"x0": (TensorProto.FLOAT, (2, "n", "n")), "x1": (TensorProto.FLOAT, ("n", 3))}, ["y"])
    executable = rx.compile(rx.from_onnx(proto))
    for n in (1, 4, 7):
        arrays = [np.random.default_rng(n).standard_normal(s).astype(np.float32) for s in ((2, n, n), (n, 3))]
        np.testing.assert_allclose(executable(*arrays), np.einsum("bii,ik->bik", *arrays), rtol=1e-6)


def test_models_as_bytes() -> None:
    proto = MODELS["perceptron"]()
    assert str(rx.from_onnx(proto.SerializeToString())) == str(rx.from_onnx(proto))
    assert str(rx.from_onnx(bytearray(proto.SerializeToString()))) == str(rx.from_onnx(proto))
    for content, message in ((b"nothing", "expected an ONNX model, content of 7 bytes is none"), (b"", "has no graph")):
        with pytest.raises(rx.RelaxError, match=message):
            rx.from_onnx(content)


def test_the_command_compiles_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(MODELS["perceptron"](), tmp_path / "m.onnx")
    assert cli.run(["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.relax"), "--dim", "batch=3"]) == 0
    capsys.readouterr()
    executable = rx.load(tmp_path / "m.relax")
    x = np.ones((3, 4), np.float32)
    given = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    executable.bind(executable.prepare(tmp_path / "m.onnx"))
    np.testing.assert_allclose(executable(x), given, rtol=1e-5, atol=1e-6)
    with pytest.raises(rx.RelaxError, match="expected shape"):
        executable(x[:2])
