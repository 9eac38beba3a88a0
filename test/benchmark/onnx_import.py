"""What importing an ONNX model with large external data takes: seconds, and memory beyond that of ``import relaxir``.

``python test/benchmark/onnx_import.py [--gib 2]`` writes a model of products in f32 whose weights lie beside it, in a file
without blocks, and imports it in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]

#: Rows and columns of a weight: 64 MiB.
_SIZE = 4096


def write(path: Path, layers: int) -> None:
    """A stack of square layers, their weights one after the other in ``<path>.data``."""
    import onnx
    from onnx import TensorProto, helper

    each = 4 * _SIZE * _SIZE
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(layers)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", _SIZE]) for n in ("x0", f"x{layers}")]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:])
    for i in range(layers):
        tensor = graph.initializer.add(
            name=f"w{i}", data_type=TensorProto.FLOAT, dims=[_SIZE, _SIZE], data_location=TensorProto.EXTERNAL
        )
        for key, value in {"location": f"{path.name}.data", "offset": i * each, "length": each}.items():
            tensor.external_data.add(key=key, value=str(value))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
    with open(f"{path}.data", "wb") as file:
        file.truncate(layers * each)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=int, default=2)
    parser.add_argument("path", nargs="?", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.path is not None:
        from prepare_measure import measured

        import relaxir as rx

        measured(lambda: rx.from_onnx(options.path))
        return
    with tempfile.TemporaryDirectory(prefix="relaxir-onnx-") as folder:
        path = Path(folder) / "model.onnx"
        write(path, options.gib * 16)
        done = subprocess.run([sys.executable, __file__, str(path)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    peak = found["peak"] / 2**20
    print(f"{options.gib} GiB: {found['seconds']:.2f} s, {found['processor']:.2f} s of processor, +{peak:.0f} MiB")


if __name__ == "__main__":
    main()
