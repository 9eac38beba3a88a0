"""IREE from ONNX, its weights as parameters, for this processor, with data tiling."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import iree.compiler as compiler
import iree.runtime as runtime
import onnx

from ..cases import Case
from . import Loaded, NotApplicableError, inputs_of

__all__ = ["load"]

_FLAGS = [
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    "--iree-opt-data-tiling",
    # BERT with data tiling asks for 74 kB, int8 weights for 131; the default allows 32.
    "--iree-llvmcpu-stack-allocation-limit=524288",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if not case.layers and case.weights != "f32":
        raise NotApplicableError("from ONNX, where these weights are f32")
    code, weights = folder / "iree.vmfb", folder / "iree.irpa"
    if not code.exists():
        _compile(folder, code, weights)
    driver = "local-sync" if threads == 1 else "local-task"
    if threads > 1:
        runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}", "--task_worker_stack_size=2097152")
    config = runtime.Config(driver)
    index = runtime.ParameterIndex()
    if weights.exists():
        index.load(str(weights))
    parameters = runtime.create_io_parameters_module(config.vm_instance, index.create_provider(scope="model"))
    module = runtime.VmModule.mmap(config.vm_instance, str(code))
    context = runtime.SystemContext(vm_modules=[parameters, module], config=config)
    name = next(n for n in module.function_names if n != "__init" and not n.endswith("$async"))
    function = context.modules[module.name][name]
    inputs = inputs_of(folder)
    taken = [value.name for value in onnx.load(folder / "model.onnx", load_external_data=False).graph.input]
    arrays = [runtime.asdevicearray(config.device, inputs[name]) for name in taken]

    def results(value: object) -> list[object]:
        return [v.to_host() for v in (value if isinstance(value, tuple | list) else (value,))]

    return Loaded(lambda: function(*arrays), results)


def _compile(folder: Path, code: Path, weights: Path) -> None:
    text = folder / "iree.mlir"
    command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(folder / "model.onnx"), "-o", str(text)]
    command += ["--externalize-params", "--save-params-to", str(weights)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"import failed: {done.stderr.strip().splitlines()[-1]}")
    try:
        compiler.compile_file(str(text), input_type="onnx", output_file=str(code), extra_args=_FLAGS)
    except compiler.CompilerToolError as error:
        lines = [line for line in str(error).splitlines() if "error:" in line]
        raise RuntimeError(lines[0].split("error:", 1)[1] if lines else str(error)) from None
    finally:
        text.unlink()
