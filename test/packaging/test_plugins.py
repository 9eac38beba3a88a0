"""Packages of others, ``plugins/``: installed, found by their entry points, and used as if they were ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import relaxir as rx
from relaxir.dialect import plugins
from relaxir.dialect.context import operations
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.reference.registry import families_loaded, reference
from relaxir.lowering import backend
from relaxir.lowering.linalg.registry import lowering, lowerings
from support import forked_python, reference_backend
from support.c_compiler import c_compiler

PLUGINS = Path(__file__).with_name("plugins")

#: A module with an op of another package, on what a pass of a third one simplifies and on a weight.
MODULE = """
import numpy as np
import relaxir as rx
b = rx.Builder()
with b.function("main"):
    x, w = b.input("x", ("n", 4)), b.weight("w", (4,))
    b.output(y=b.add(b.acme_soft_sign(b.negative(b.negative(x)), sharpness=2.0), b.acme_soft_sign(w)))
module = b.build()
weights = {"w": np.array([-3, 0, 1, 7], np.float32)}
x = np.linspace(-4, 4, 20, dtype=np.float32).reshape(5, 4)
want = x / (2 + abs(x)) + weights["w"] / (1 + abs(weights["w"]))
"""


#: Wheels of all packages, as pip has them made, which starts three processes for each.
BUILD = """
import os
import sys
from setuptools import build_meta
wheels, *folders = sys.argv[1:]
for folder in folders:
    os.chdir(folder)
    build_meta.build_wheel(wheels)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all packages of ``plugins/`` are installed, from copies: building leaves files behind.

    The backend's module is the one that other tests use as it is.
    """
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    folders = [shutil.copytree(p, source / p.name) for p in sorted(PLUGINS.iterdir()) if (p / "pyproject.toml").exists()]
    shutil.copy(Path(reference_backend.__file__), source / "reference_backend")
    folders, wheels = [str(f) for f in folders], tmp_path_factory.mktemp("wheels")
    subprocess.run([sys.executable, "-c", BUILD, str(wheels), *folders], check=True, capture_output=True, text=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*pip, *map(str, wheels.glob("*.whl"))], check=True, capture_output=True, text=True)
    return target


def output(installed: Path, code: str, cache: str = "off") -> str:
    """What a Python program prints that finds the packages."""
    done = forked_python.run(code, environment=os.environ | {"PYTHONPATH": str(installed), "RELAXIR_CACHE_DIR": cache})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pass_is_listed_and_runs(installed: Path) -> None:
    code = f"""{MODULE}
from relaxir.tools.relax_opt import run
print(module.run("acme-fold-negative"))
run(["--list-passes"])
"""
    printed = output(installed, code)
    assert "relax.negative" not in printed
    assert "acme-fold-negative" in printed


def test_an_op_is_built_evaluated_lifted_and_compiled(installed: Path) -> None:
    code = f"""{MODULE}
np.testing.assert_allclose(rx.evaluate(module, "main", x, weights=weights)[0], want, rtol=1e-6)
parsed = rx.Module.parse(str(module))
assert str(parsed) == str(module)
executable = rx.compile(parsed)
executable.bind(executable.prepare(weights))
np.testing.assert_allclose(executable(x), want, rtol=1e-6)
print(*executable.manifest.prepared_weights)
"""
    assert "w.acme_soft_sign" in output(installed, code)


def test_an_op_with_an_optional_operand_and_two_results(installed: Path) -> None:
    code = """
import numpy as np
import relaxir as rx
b = rx.Builder()
with b.function("main"):
    x, w = b.input("x", ("n", 4)), b.weight("w", (4,))
    b.output(*b.acme_parts(x, scale=2.0), *b.acme_parts(x, w, scale=3.0), *b.acme_parts(w, scale=1.0))
module = rx.Module.parse(str(b.build()))
x, w = np.linspace(-4, 4, 20, dtype=np.float32).reshape(5, 4), np.array([-3, 0, 1, 7], np.float32)
want = [f(v, 0) for v in (2 * x, 3 * x + w, w) for f in (np.maximum, np.minimum)]
executable = rx.compile(module)
executable.bind(executable.prepare({"w": w}))
for results in (rx.evaluate(module, "main", x, weights={"w": w}), executable(x)):
    for got, wanted in zip(results, want, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
try:
    rx.Builder.acme_parts(b, x, w)
except rx.RelaxError as error:
    print(error)
"""
    assert "'relax.acme_parts' op missing a required argument: 'scale'" in output(installed, code)


def test_an_op_is_verified(installed: Path) -> None:
    code = """
import relaxir as rx
text = '''func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relax.acme_soft_sign"(%x) {sharpness = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}'''
try:
    rx.Module.parse(text)
except rx.RelaxError as error:
    print(error)
"""
    environment = os.environ | {"PYTHONPATH": str(installed)}  # in an interpreter of its own
    printed = subprocess.run([sys.executable, "-c", code], cwd="/", env=environment, check=True, capture_output=True, text=True)
    assert "-:2:8: 'relax.acme_soft_sign' op expected a sharpness above 0, got 0.0" in printed.stdout


def test_a_kernel_template_is_asked_first(installed: Path) -> None:
    code = """
import acme_kernels
import numpy as np
import relaxir as rx
b = rx.Builder()
with b.function("main"):
    x = b.input("x", ("n",))
    b.output(b.negative(x), b.exp(x))
x = np.linspace(-4, 4, 21, dtype=np.float32)
exe = rx.compile(b.build())
first, second = exe(x)
np.testing.assert_array_equal(first, -x)
np.testing.assert_allclose(second, np.exp(x), rtol=1e-6)
print(len(acme_kernels.TAKEN))
kernels = [k for section in exe.report.sections if section.kind == "kernels" for k in section.kernels]
print([k.ops[0] for k in kernels if k.plan is None])  # no plan of ours, where it was not followed
"""
    assert output(installed, code).split("\n") == ["1", "['relax.negative']", ""]


def test_a_backend_compiles_runs_and_is_asked_of_an_artifact(installed: Path, tmp_path: Path) -> None:
    code = f"""{MODULE}
executable = rx.compile(module, target="reference")
path = {str(tmp_path / "model.relax")!r}
executable.save(path)
for exe in (executable, rx.load(path)):
    exe.bind(exe.prepare(weights))
    np.testing.assert_array_equal(exe(x), rx.evaluate(module, "main", x, weights=weights)[0])
print(rx.load(path).manifest.target.backend)
"""
    assert output(installed, code).strip() == "reference"
    with pytest.raises(RelaxError, match=r"backend that is installed \(cpu, cuda\), got code of 'reference'"):
        rx.load(tmp_path / "model.relax")


def test_an_operator_of_torch_is_imported(installed: Path) -> None:
    code = """
import acme_torch, numpy as np, torch
import relaxir as rx
class Model(torch.nn.Module):
    def forward(self, x):
        return acme_torch.soft_sign(x, 2.0)
x = torch.linspace(-4, 4, 20)
(got,) = rx.evaluate(rx.from_torch(torch.export.export(Model(), (x,))), "main", x.numpy())
np.testing.assert_allclose(got, Model()(x).numpy(), rtol=1e-6)
"""
    output(installed, code)


def test_a_c_function_computes_an_operator_of_torch(installed: Path) -> None:
    source, library = PLUGINS / "acme_torch" / "acme.c", installed / "libacme.so"
    subprocess.run([c_compiler(), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    code = """
import acme_torch, numpy as np, torch
import relaxir as rx
class Model(torch.nn.Module):
    def forward(self, x):
        return acme_torch.double(x).relu()
x = torch.linspace(-4, 4, 20)
executable = rx.compile(rx.from_torch(torch.export.export(Model(), (x,))))
print(executable.manifest.externs[0].symbol)
torch.testing.assert_close(executable(x), Model()(x))
"""
    assert output(installed, code) == "acme_double\n"


def test_code_that_was_kept_is_not_that_of_another_version(installed: Path, tmp_path: Path) -> None:
    """What a package says a lowering is decides what comes out of the cache."""
    code = f"""{MODULE}
executable = rx.compile(module)
executable.bind(executable.prepare(weights))
print(float(executable(x)[0, 0]))
"""
    changed = shutil.copytree(installed, tmp_path / "changed")
    before = output(installed, code, str(tmp_path / "cache"))
    path = changed / "acme_ops" / "lowering.py"
    longer = 'return x * 1 * (math("absf", x)'  # bytecode is taken for that of a file of its size, written within a second
    path.write_text(path.read_text().replace('return x / (math("absf", x)', longer))
    assert output(changed, code, str(tmp_path / "cache")) != before


def test_a_package_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("acme", "acme_nowhere", plugins.OPS)
    monkeypatch.setattr(plugins, "plugins", lambda group: (entry,))
    with pytest.raises(RelaxError, match=r"expected plug-in ops 'acme' at acme_nowhere\.ops, got No module named"):
        plugins.load_parts.__wrapped__("ops")


def test_a_package_with_a_mistake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "acme_mistaken").mkdir()
    (tmp_path / "acme_mistaken" / "ops.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("acme", "acme_mistaken", plugins.OPS)
    monkeypatch.setattr(plugins, "plugins", lambda group: (entry,))
    message = r"expected plug-in ops 'acme' at acme_mistaken\.ops, got ZeroDivisionError: division by zero"
    with pytest.raises(RelaxError, match=message):
        plugins.load_parts.__wrapped__("ops")


def test_an_object_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("acme", "acme_nowhere:lower", plugins.KERNELS)
    monkeypatch.setattr(plugins, "plugins", lambda group: (entry,))
    message = r"expected plug-in 'acme' of relaxir\.kernels at acme_nowhere:lower, got No module named"
    with pytest.raises(RelaxError, match=message):
        plugins.load.__wrapped__(plugins.KERNELS, "a function", callable)


def test_a_backend_of_a_name_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "load", lambda *_: (backend.Backend("cpu", "acme:Compiler", "acme:Runtime"),))
    with pytest.raises(RelaxError, match="expected one backend 'cpu', got that of acme:Compiler as well"):
        backend.backend_of("cpu")


def test_an_op_of_a_name_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = operations()[0]
    other = type("Other", (), {"OPERATION_NAME": ours.OPERATION_NAME, "__module__": "acme"})
    monkeypatch.setattr("relaxir.dialect.relax.Relax.operations", [*operations(), other])
    with pytest.raises(RelaxError, match=rf"expected one op '{ours.OPERATION_NAME}', got those of {ours.__module__} and acme"):
        operations.__wrapped__()


def test_a_meaning_of_an_op_that_has_one() -> None:
    def negative() -> None: ...

    negative.__module__ = "acme"
    families_loaded()
    message = r"expected one meaning of 'relax\.negative', got those of relaxir\.dialect\.reference\.unary and acme"
    with pytest.raises(RelaxError, match=message):
        reference(negative)


def test_a_lowering_of_an_op_that_has_one() -> None:
    def lower() -> None: ...

    lower.__module__ = "acme"
    home = lowerings()["relax.negative"].__module__
    with pytest.raises(RelaxError, match=rf"expected one lowering of 'relax\.negative', got those of {home} and acme"):
        lowering("relax.negative")(lower)  # type: ignore[arg-type]
