"""Models as ONNX files against ONNX Runtime, output by output.

    .venv/bin/python test/conformance/onnx_models.py                       # tiny models of its own, all forms
    .venv/bin/python test/conformance/onnx_models.py --real --only 'bert*' # of real size
    .venv/bin/python test/conformance/onnx_models.py FOLDER                # every .onnx file below a folder

Its own are ResNet-18 and 50, BERT, GPT-2 and Llama with random weights: exported by torch.onnx with all sizes known and with
open ones, and quantized and fused by ONNX Runtime's tools (``support/exported_onnx.py``). A line per file: the largest
difference of any output relative to that output's largest element, and whether it is within the tolerance. Inputs of a folder's
files are random; sizes that are open are 2 but for ``--size NAME=NUMBER``. The exit code is 1 where a file fails. Needs the
extras torch, onnx and bench, and transformers.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import relaxir as rx  # noqa: E402
from support import exported_onnx  # noqa: E402

Arrays = dict[str, np.ndarray[Any, Any]]

#: Largest differences. Codes of activations differ by one where a float is at the edge between two, as ONNX Runtime sums in
#: another order, or rounds scales elsewhere: each by 1/255 of a range, and some meet in a sum. Floats have the order alone.
TOLERANCES = {"int8": 5e-2, "qdq": 5e-2, "qoperator": 5e-2, "nbits": 1e-2}
#: In real size there are twelve layers of these: ONNX Runtime's own results of BERT in QDQ form move by 6.2e-2 (as the root of
#: mean squares: 6.0e-2 of all) where the weights of its norms are changed by 1e-6, and by as much without its optimizer.
_REAL = 2.0
_FLOATS = 1e-4


@dataclass
class Model:
    """One of the set.

    Attributes:
        make: of whether it is of real size: module and inputs.
        dynamic: names of sizes of inputs that stay open.
        variants: what is derived from the exported file.
        kind: for ONNX Runtime's optimizer.
    """

    make: Callable[[bool], tuple[Any, dict[str, Any]]]
    dynamic: Mapping[str, Mapping[int, str]]
    variants: tuple[str, ...]
    kind: str = ""


@dataclass
class Result:
    """What came of one file."""

    name: str
    error: float = float("nan")
    text: str = ""
    seconds: float = 0.0
    differences: list[float] = field(default_factory=list[float])

    def right(self, tolerance: float) -> bool:
        return not self.text and self.error <= tolerance


def _resnet(layers: int) -> Callable[[bool], tuple[Any, dict[str, Any]]]:
    def make(real: bool) -> tuple[Any, dict[str, Any]]:
        import torch
        from transformers import ResNetConfig, ResNetForImageClassification

        depths, kind = ([2, 2, 2, 2], "basic") if layers == 18 else ([3, 4, 6, 3], "bottleneck")
        scale = 1 if real else 8
        sizes = [s // scale * (1 if layers == 18 else 4) for s in (64, 128, 256, 512)]
        config = ResNetConfig(embedding_size=64 // scale, hidden_sizes=sizes, depths=depths, layer_type=kind, num_labels=100)
        module = ResNetForImageClassification(config)
        for part in module.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
        size = 224 if real else 64
        return _output(module, "logits"), {"x": torch.randn(1, 3, size, size)}

    return make


def _output(module: Any, name: str, **options: Any) -> Any:
    from benchmark.comparison.networks import _Output

    return _Output(module, name, **options)


def _bert(real: bool) -> tuple[Any, dict[str, Any]]:
    import torch
    from transformers import BertConfig, BertModel

    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 500}
    config = BertConfig(**({} if real else small), attn_implementation="sdpa")
    return _output(BertModel(config), "last_hidden_state"), {"x": torch.randint(0, 500, (1, 128 if real else 16))}


def _gpt2(real: bool) -> tuple[Any, dict[str, Any]]:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(**({} if real else {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500}))
    return _output(GPT2LMHeadModel(config), "logits", use_cache=False), {"x": torch.randint(0, 500, (1, 128 if real else 16))}


def _llama(real: bool) -> tuple[Any, dict[str, Any]]:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    hidden, heads, inner = (2048, 32, 5632) if real else (64, 4, 128)
    config = LlamaConfig(vocab_size=4096 if real else 500, hidden_size=hidden, num_hidden_layers=2, num_attention_heads=heads,
                         num_key_value_heads=heads // 2, intermediate_size=inner, max_position_embeddings=2048)  # fmt: skip
    return _output(LlamaForCausalLM(config), "logits", use_cache=False), {"x": torch.randint(0, 500, (1, 128 if real else 16))}


_TEXT = {"x": {0: "batch", 1: "length"}}
MODELS = {
    "resnet18": Model(_resnet(18), {"x": {0: "batch"}}, ("qdq", "qoperator", "fused")),
    "resnet50": Model(_resnet(50), {"x": {0: "batch"}}, ("qdq", "fused")),
    "bert": Model(_bert, _TEXT, ("int8", "qdq", "nbits", "fused"), "bert"),
    "gpt2": Model(_gpt2, _TEXT, ("int8", "qdq", "nbits", "fused")),
    "llama": Model(_llama, _TEXT, ("int8", "qdq", "nbits", "fused")),
}


def generated(folder: Path, real: bool, only: str) -> Iterator[tuple[str, Path, Arrays, str]]:
    """The set's files, one after the other: name, path, inputs, what went wrong with writing it."""
    for name, model in MODELS.items():
        names = [f"{name}-{v}" for v in ("static", "dynamic", *model.variants)]
        if any(fnmatch.fnmatch(n, only) for n in names):
            yield from _files(folder, name, model, real, only)


def _files(folder: Path, name: str, model: Model, real: bool, only: str) -> Iterator[tuple[str, Path, Arrays, str]]:
    import torch

    torch.manual_seed(0)
    module, given = model.make(real)
    inputs = {key: value.numpy() for key, value in given.items()}
    static = folder / f"{name}-static.onnx"
    exported_onnx.export(module.eval(), given, static)
    for variant in ("static", "dynamic", *model.variants):
        full, path = f"{name}-{variant}", folder / f"{name}-{variant}.onnx"
        if not fnmatch.fnmatch(full, only):
            continue
        try:
            if variant == "dynamic":
                wider = {k: torch.cat([v, v]) for k, v in given.items()}
                exported_onnx.export(module, wider, path, model.dynamic)
            elif variant != "static":
                exported_onnx.derive(variant, static, path, inputs, model.kind)
        except Exception as error:
            yield full, path, inputs, f"not written: {type(error).__name__}: {error}"
            continue
        yield full, path, inputs, ""


def compare(name: str, path: Path, inputs: Arrays) -> Result:
    """One file by both."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    result = Result(name)
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        wanted = session.run(None, inputs)
    except Exception as error:  # of its own kinds, which have no base class of its own
        result.text = f"ONNX Runtime: {type(error).__name__}: {error}"
        return result
    start = time.perf_counter()
    try:
        executable = rx.compile(path)
        if executable.manifest.raw_weights:
            executable.bind(executable.prepare(path))
        result.seconds = time.perf_counter() - start
        found: Any = executable(**inputs)
    except rx.RelaxError as error:
        result.text = str(error).splitlines()[0]
        return result
    got = found if isinstance(found, tuple) else (found,)
    result.differences = [_difference(g, w) for g, w in zip(got, wanted, strict=True)]
    result.error = max(result.differences)
    return result


def _difference(got: np.ndarray[Any, Any], wanted: Any) -> float:
    wanted = np.asarray(wanted)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return float("inf")
    if not wanted.size:
        return 0.0
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    if not (np.isfinite(a) == np.isfinite(b)).all():
        return float("inf")
    return float(np.nanmax(np.abs(a - b), initial=0.0) / max(float(np.nanmax(np.abs(b), initial=0.0)), 1e-9))


def _random(path: Path, sizes: Mapping[str, int]) -> Arrays:
    """Inputs of a file: floats of a normal distribution, integers 0 to 3."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    generator, found = np.random.default_rng(0), Arrays()
    types = {"float": "float32", "double": "float64"}
    for given in session.get_inputs():
        shape = [d if isinstance(d, int) else sizes.get(str(d), 2) for d in given.shape]
        dtype = np.dtype(types.get(given.type[7:-1], given.type[7:-1]))
        numbers = generator.standard_normal(shape) if dtype.kind == "f" else generator.integers(0, 4, shape)
        found[given.name] = np.asarray(numbers, dtype)
    return found


def _of_folder(folder: Path, sizes: Mapping[str, int]) -> Iterator[tuple[str, Path, Arrays, str]]:
    for path in sorted(folder.rglob("*.onnx")):
        try:
            yield str(path.relative_to(folder)), path, _random(path, sizes), ""
        except Exception as error:
            yield str(path.relative_to(folder)), path, {}, f"ONNX Runtime: {type(error).__name__}: {error}"


def _tolerance(name: str, real: bool) -> float:
    """The largest difference of one of the set."""
    quantized = TOLERANCES.get(name.rpartition("-")[2])
    return _FLOATS if quantized is None else quantized * (_REAL if real else 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where a file fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="of .onnx files; else the set")
    parser.add_argument("--real", action="store_true", help="the set in real size")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of the set, such as 'bert*'")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=NUMBER", help="of inputs of a folder's files")
    parser.add_argument(
        "--tolerance", type=float, help="the largest difference (default 1e-4; of the set's quantized ones more)"
    )
    parser.add_argument("--keep", type=Path, help="where the set's files are written, and stay")
    options = parser.parse_args(arguments)
    sizes = {name: int(number) for name, _, number in (s.partition("=") for s in options.size)}
    with tempfile.TemporaryDirectory(prefix="relaxir-onnx-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        files = generated(folder, options.real, options.only) if options.folder is None else _of_folder(options.folder, sizes)
        failed, count = 0, 0
        for name, path, inputs, text in files:
            found = Result(name, text=text) if text else compare(name, path, inputs)
            tolerance = options.tolerance or _tolerance(name, options.real)
            count += 1
            failed += not found.right(tolerance)
            verdict = "right" if found.right(tolerance) else "WRONG" if not found.text else "failed"
            numbers = f"{found.error:.1e} of at most {tolerance:g}, {found.seconds:.1f} s to compile"
            what = found.text or numbers
            print(f"{name:24s} {verdict:6s} {what}", flush=True)
        print(f"{count - failed} of {count} right")
    return int(failed > 0 or not count)


if __name__ == "__main__":
    sys.exit(main())
