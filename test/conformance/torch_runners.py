"""What each peer makes of a saved program of torch.export: a function that computes its results.

A peer imports nothing of others.

    python test/conformance/torch_runners.py {relaxir,iree,tvm}     # folders on standard input, an answer for each

A folder has ``program.pt2`` and ``inputs.pt``; results go to ``PEER.pt``. The answer is ``ran``, or ``refused`` and why.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

__all__ = ["PEERS"]

Run = Callable[[Sequence[torch.Tensor]], Sequence[Any]]

#: As in onnx_runners.py.
_IREE_FLAG = "--iree-llvmcpu-target-cpu=host"


def _relaxir(path: Path) -> Run:
    import relaxir

    program = torch.export.load(path)
    exe = relaxir.compile(relaxir.from_torch(program), cache=False)
    with tempfile.TemporaryDirectory() as folder:
        relaxir.save_weights(program, f"{folder}/weights.safetensors")
        exe.bind(exe.prepare(f"{folder}/weights.safetensors"))
    count = len(program.graph_signature.user_outputs)
    return lambda inputs: _listed(exe(*inputs), tuple | list)[:count]


def _iree(path: Path) -> Run:
    import iree.runtime as runtime
    from iree.turbine import aot

    def compiled(program: torch.export.ExportedProgram) -> Any:
        for node in program.graph.nodes:  # lists of tensors, of which a file makes tuples
            if isinstance(node.meta.get("val"), tuple):
                node.meta["val"] = list(node.meta["val"])
        made = aot.export(program)
        made.session.set_flags(_IREE_FLAG)
        return made.compile(save_to=None, target_backends=("llvm-cpu",))

    program = torch.export.load(path)
    try:  # in core operators first: other routes into it decompose the others
        code = compiled(program.run_decompositions())
    except Exception:
        code = compiled(program)
    config = runtime.Config("local-sync")
    loaded = runtime.VmModule.copy_buffer(config.vm_instance, bytes(code.map_memory()))
    function = runtime.SystemContext(vm_modules=[loaded], config=config).modules[loaded.name]["main"]

    def run(inputs: Sequence[torch.Tensor]) -> list[Any]:
        found = function(*(runtime.asdevicearray(config.device, t.numpy()) for t in inputs))
        return [f.to_host() for f in _listed(found, tuple | list)]

    return run


def _tvm(path: Path) -> Run:
    import tvm
    from tvm import relax
    from tvm.relax.frontend.torch import from_exported_program

    module = from_exported_program(torch.export.load(path))
    machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())

    def run(inputs: Sequence[torch.Tensor]) -> list[Any]:
        found = machine["main"](*(tvm.runtime.tensor(t.numpy()) for t in inputs))
        return [f.numpy() for f in ([found] if isinstance(found, tvm.runtime.Tensor) else list(found))]

    return run


PEERS: dict[str, Callable[[Path], Run]] = {"relaxir": _relaxir, "iree": _iree, "tvm": _tvm}


def _listed(value: Any, many: Any) -> list[Any]:
    return list(value) if isinstance(value, many) else [value]


def _outcome(peer: str, folder: Path) -> tuple[str, str]:
    inputs = [t.contiguous() for t in torch.load(folder / "inputs.pt")]
    try:
        with torch.no_grad():
            results = PEERS[peer](folder / "program.pt2")(inputs)
    except Exception as error:
        return "refused", f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    torch.save([torch.as_tensor(r).clone() for r in results], folder / f"{peer}.pt")
    return "ran", ""


def main(peer: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    for name in ("torchvision", "transformers.integrations.moe"):  # operators that programs may have
        with contextlib.suppress(Exception):
            __import__(name)
    torch.set_num_threads(1)
    print("ready", file=answers)
    for line in sys.stdin:
        print(json.dumps(_outcome(peer, Path(line.strip()))), file=answers)


if __name__ == "__main__":
    main(sys.argv[1])
