"""What packages of others get wrong about their ops: errors that name the op, and no tracebacks through ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect import ops, plugins
from relaxir.dialect.foreign_code import check_ops
from relaxir.dialect.op import Op
from relaxir.dialect.reference import apply, registry
from relaxir.dialect.struct_info import TensorInfo
from relaxir.lowering import backend
from relaxir.lowering.cpu import early_kernels, known_kernels
from relaxir.lowering.cpu.kernels import package_templates
from relaxir.lowering.linalg import registry as lowering_registry
from relaxir.lowering.linalg import to_linalg

X = np.ones((2, 4), np.float32)


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of our ops is another package's."""
    monkeypatch.setattr(ops.Split, "__module__", "acme.ops")


def model() -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(*b.split(b.input("x", (2, 4)), sections=2, axis=1))
    return b.build()


def key_error(*arguments: Any, **rest: Any) -> Any:
    raise KeyError("x")


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize(
    ("infer", "got"),
    [
        (lambda operands, attrs: None, "None"),
        (lambda operands, attrs: operands[0].shape, r"\(2, 4\)"),
        (lambda operands, attrs: [operands[0], None], r"\[TensorInfo.*, None\]"),
        (key_error, "KeyError: 'x'"),
    ],
)
def test_inference(infer: Callable[..., Any], got: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(model())
    monkeypatch.setattr(ops.Split, "infer", staticmethod(infer))
    message = f"'relax.split' op expected inference that returns infos of tensors, got {got}"
    with pytest.raises(rx.RelaxError, match=message):
        model()
    with pytest.raises(rx.RelaxError, match=message):
        rx.Module.parse(text)


def test_inference_of_another_number_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def infer(operands: list[TensorInfo], attrs: Any) -> list[TensorInfo]:
        return [*operands, *operands]

    monkeypatch.setattr(ops.Softmax, "infer", staticmethod(infer))
    b = rx.Builder()
    with pytest.raises(rx.RelaxError, match="expected infos of results result, got 2"), b.function("main"):
        b.softmax(b.input("x", (2, 4)))


def test_bugs_of_ours_stay_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops.Split, "infer", staticmethod(key_error))
    with pytest.raises(KeyError):
        model()


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, **rest: None, "expected a reference function that returns 2 arrays, got 1"),
        (lambda x, **rest: (x,) * 3, "expected a reference function that returns 2 arrays, got 3"),
        (lambda x, **rest: (x[:, :2], None), "expected a reference function that returns arrays, got None"),
        (lambda x, **rest: (x[0].tolist(), x), "expected a reference function that returns arrays, got \\[1.0, "),
        (key_error, "expected a reference function that returns arrays, got KeyError: 'x'"),
        (lambda x: (x, x), "expected a reference function that returns arrays, got TypeError: .* unexpected keyword argument"),
    ],
)
def test_reference(function: Callable[..., Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, found = model(), registry.reference_of("split")
    wrong = replace(found, function=function, wants_shape=False, wants_dtype=False, wants_results=False)
    monkeypatch.setattr(apply, "_reference", lambda name: wrong)
    with pytest.raises(rx.RelaxError, match=f"'relax.split' op {message}"):
        rx.evaluate(module, "main", X)


@pytest.mark.parametrize(
    ("lower", "message"),
    [
        (lambda b, source: None, "expected a lowering that returns 2 values, got None"),
        (lambda b, source: source.operands[0], "expected a lowering that returns 2 values, got Tensor"),
        (lambda b, source: [source.operands[0], 4], r"expected a lowering that returns 2 values, got \[Tensor"),
        (key_error, "expected a lowering that returns values, got KeyError: 'x'"),
    ],
)
def test_lowering(lower: Callable[..., Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(to_linalg, "lowering_of", lambda name: lower)
    with pytest.raises(rx.RelaxError, match=f"'relax.split' op {message}"):
        rx.compile(model(), cache=False)


def test_a_name_that_no_op_has() -> None:
    message = f"expected the lowering of an op, got that of 'acme_bias' in {__name__}"
    with pytest.raises(rx.RelaxError, match=message):
        check_ops({"acme_bias": key_error, "relax.add": key_error}, "lowering")
    with pytest.raises(rx.RelaxError, match=r"expected the reference of an op, got that of 'relax\.acme_bias' in "):
        check_ops({"acme_bias": key_error, "add": key_error}, "reference", "relax.")


@pytest.mark.usefixtures("foreign")
def test_what_is_missing_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "families_loaded", dict)
    message = r"expected an op with reference semantics, got 'relax\.split', which acme\.reference is to give"
    with pytest.raises(rx.RelaxError, match=message):
        registry.reference_of("split")
    with pytest.raises(rx.RelaxError, match=r"expected an op with reference semantics, got 'relax\.add'$"):
        registry.reference_of("add")
    monkeypatch.setattr(lowering_registry, "lowerings", dict)
    message = r"expected an op that lowers to linalg, got 'relax\.split', which acme\.lowering is to give"
    with pytest.raises(rx.RelaxError, match=message):
        lowering_registry.lowering_of("relax.split")


def erases(function: Any, _: Any) -> bool:
    for op in reversed(list(function.regions[0].blocks[0].operations)):
        if op.operation.name == "linalg.generic":
            op.erase()
            return False
    return False


def leaves_no_return(function: Any, _: Any) -> bool:
    for op in reversed(list(function.regions[0].blocks[0].operations)):
        op.operation.erase()
    return True


def divides(function: Any, _: Any) -> bool:
    return bool(1 // 0)


@pytest.mark.parametrize(
    ("lower", "message"),
    [
        (lambda *_: True, r"that lowers all operations where it answers True, got 'linalg\.generic' still there"),
        (erases, "that changes nothing where it answers False, got another function"),
        (leaves_no_return, "that gives a valid function, got"),
        (lambda *_: None, "that answers True or False, got None"),
        (divides, "that answers True or False, got ZeroDivisionError: "),
    ],
)
def test_a_kernel_template(lower: Callable[..., bool], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = (EntryPoint("acme-wrong", "acme:lower", plugins.KERNELS),)
    for module in (package_templates, early_kernels, known_kernels):
        monkeypatch.setattr(module, "plugins", lambda _: entries)
    monkeypatch.setattr(package_templates, "load", lambda *_: (lower,))
    b = rx.Builder()
    with b.function("main"):
        b.output(y=b.tanh(b.input("x", (4, 4))))
    with pytest.raises(rx.RelaxError, match=f"expected a kernel template 'acme-wrong' {message}"):
        rx.compile(b.build(), cache=False)


@pytest.mark.parametrize(
    ("group", "wanted", "fits"),
    [(plugins.KERNELS, "a function", callable), (plugins.BACKENDS, "a relaxir.extend.Backend", backend._is_backend)],
)
def test_an_entry_point_that_names_a_module(
    group: str, wanted: str, fits: Callable[[Any], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("acme", "json", group)
    monkeypatch.setattr(plugins, "plugins", lambda _: (entry,))
    with pytest.raises(rx.RelaxError, match=f"expected plug-in 'acme' of {group} at json to be {wanted}, got module"):
        plugins.load.__wrapped__(group, wanted, fits)


def test_an_op_of_a_name_that_is_none() -> None:
    with pytest.raises(rx.RelaxError, match="expected an op name of lower-case letters, digits and underscores, got 'acme x'"):

        class Acme(Op, name="acme x"):
            """Nothing."""
