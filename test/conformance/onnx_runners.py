"""What each peer makes of an ONNX model: a function that computes its results. A peer imports nothing of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from .onnx_tests import arrays_of, compare

__all__ = ["outcome"]

Run = Callable[[list[Any]], Any]

#: As in test/benchmark/comparison/peers/iree_cpu.py, but for what is for speed.
_IREE_FLAGS = [
    "--iree-llvmcpu-target-cpu=host",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
]


def outcome(peer: str, test: Any) -> tuple[str, str]:
    """``right``, ``with constants``, ``wrong`` or ``refused``, and why."""
    found = _tried(test, _LOADERS[peer])
    if found[0] == "right" or peer not in ("iree", "tvm"):
        return found
    again = _tried(test, lambda model: _with_constants(model, _LOADERS[peer]))
    return ("with constants", found[1]) if again[0] == "right" else found


def _tried(test: Any, load: Callable[[Any], Run]) -> tuple[str, str]:
    try:
        compare(test, load)
    except AssertionError as error:
        return "wrong", _line(error)
    except Exception as error:
        return "refused", _line(error)
    return "right", ""


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]


def _relaxir(model: Any) -> Run:
    from relaxir import backend

    return backend.prepare(model).run


def _onnxruntime(model: Any) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return lambda inputs: session.run(None, dict(zip(names, arrays_of(inputs), strict=False)))


def _iree(model: Any) -> Run:
    import iree.compiler as compiler
    import iree.runtime as runtime
    from iree.compiler.extras import onnx_importer
    from iree.compiler.ir import Context

    onnx.checker.check_model(model)
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(model, data_prop=True))
    module = info.create_module(context=Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    code = compiler.compile_str(module.get_asm(), input_type="onnx", extra_args=_IREE_FLAGS)
    config = runtime.Config("local-sync")
    loaded = runtime.VmModule.copy_buffer(config.vm_instance, code)
    context = runtime.SystemContext(vm_modules=[loaded], config=config)
    name = next(n for n in loaded.function_names if n != "__init" and not n.endswith("$async"))
    function = context.modules[loaded.name][name]

    def run(inputs: list[Any]) -> list[Any]:
        found = function(*(runtime.asdevicearray(config.device, a) for a in arrays_of(inputs)))
        return [f.to_host() for f in (found if isinstance(found, tuple | list) else (found,))]

    return run


def _tvm(model: Any) -> Run:
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    defaults = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in defaults]
    module = from_onnx(model, keep_params_in_input=False)
    machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())

    def run(inputs: list[Any]) -> list[Any]:
        given = dict(zip(names, arrays_of(inputs), strict=False))
        found = machine["main"](*(tvm.runtime.tensor(a) for a in given.values()))
        results = [found] if isinstance(found, tvm.runtime.Tensor) else list(found)
        return [r.numpy() for r in results]

    return run


_LOADERS: dict[str, Callable[[Any], Run]] = {"relaxir": _relaxir, "onnxruntime": _onnxruntime, "iree": _iree, "tvm": _tvm}


def _with_constants(model: Any, load: Callable[[Any], Run]) -> Run:
    """Loads when the inputs are there: integers of at most one dimension are initializers."""

    def run(inputs: list[Any]) -> Any:
        arrays = arrays_of(inputs)
        fixed = [a.ndim <= 1 and a.dtype.kind in "iub" for a in arrays]
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        for value, array, is_fixed in zip(model.graph.input, arrays, fixed, strict=False):
            if is_fixed:
                copy.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), value.name))
        kept = [v for v, is_fixed in zip(model.graph.input, fixed, strict=False) if not is_fixed]
        del copy.graph.input[:]
        copy.graph.input.extend(kept)
        return load(copy)([a for a, is_fixed in zip(arrays, fixed, strict=True) if not is_fixed])

    return run
