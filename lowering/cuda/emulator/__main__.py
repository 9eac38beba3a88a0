"""``python -m relaxir.lowering.cuda.emulator kernel.ptx``: checks a PTX text, lists its kernels, or runs one on arrays.

    python -m relaxir.lowering.cuda.emulator add.ptx --run add --grid 4 --block 128 f32[512]=random f32[512]=new 512

An argument is an integer, ``i64:5``, ``f32:0.5`` (any NumPy type), or an array in device memory: its type, its shape and
what is in it, ``random``, ``zeros``, ``arange``, ``new`` (never written) or a ``.npy`` file. Arrays are printed afterwards, or
saved with ``--save``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ....dialect.errors import RelaxError
from . import Machine, Options
from .arrays import Array
from .core import RESERVED

__all__ = ["main"]

_TYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
_ARRAY = re.compile(r"([a-z]+\d+)\[([\d,]+)\]=(.+)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    options = _parser().parse_intermixed_args(argv)
    try:
        return _run(options)
    except (RelaxError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m relaxir.lowering.cuda.emulator", description="runs PTX without a GPU, and checks it"
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("arguments", nargs="*", help="512, f32:0.5, f32[64,8]=random|zeros|arange|new|x.npy")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--run", metavar="KERNEL")
    parser.add_argument("--grid", default="1", help="1 to 3 numbers: 4,2")
    parser.add_argument("--block", default="1", help="1 to 3 numbers: 128")
    parser.add_argument("--shared", type=int, default=0, help="bytes of dynamic shared memory")
    parser.add_argument("--no-checks", action="store_true", help="nothing but accesses outside of memory")
    parser.add_argument("--save", type=Path, help="a folder for the arrays, as arg0.npy and so on")
    return parser


def _run(options: argparse.Namespace) -> int:
    machine = Machine(options.arch, None if options.no_checks else Options())
    program = machine.load(options.file.read_text())
    if options.run is None:
        for function in program.program.module.functions.values():
            if function.is_entry:
                kernel = machine.kernel(program, function.name)
                memory = f"{kernel.static_end - RESERVED} bytes of shared and {kernel.local_bytes} of local memory"
                sizes = f"{len(function.params)} parameters, {len(kernel.function.code)} instructions"
                print(f"{function.name}: {sizes}, {memory}")
        return 0
    values = [_value(text) for text in options.arguments]
    arrays = {i: v for i, v in enumerate(values) if isinstance(v, np.ndarray)}
    places = {i: machine.memory.allocate(a.nbytes) for i, a in arrays.items()}
    for index, array in arrays.items():
        if not options.arguments[index].endswith("=new"):
            machine.memory.write(places[index], np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    grid, block = ([int(x) for x in text.split(",")] for text in (options.grid, options.block))
    machine.run(program, options.run, grid, block, [places.get(i, v) for i, v in enumerate(values)], options.shared)
    for index, array in arrays.items():
        _show(index, machine.download(places[index], array.shape, array.dtype), options.save)
    return 0


def _value(text: str) -> Any:
    """What an argument says. Raises RelaxError."""
    found = _ARRAY.fullmatch(text)
    if found:
        return _array(_type(found[1]), tuple(int(x) for x in found[2].split(",")), found[3])
    kind, colon, number = text.rpartition(":")
    try:
        return np.asarray(float(number), _type(kind))[()] if colon else int(text, 0)
    except ValueError:
        raise RelaxError(f"expected an argument like 512, f32:0.5 or f32[64]=random, got {text!r}") from None


def _type(name: str) -> Any:
    try:
        return np.dtype(_TYPES.get(name) or re.sub(r"^i", "int", re.sub(r"^u", "uint", name)))
    except TypeError:
        raise RelaxError(f"expected a type like f32, bf16 or i64, got {name!r}") from None


def _array(kind: Any, shape: tuple[int, ...], content: str) -> Array:
    size = int(np.prod(shape))
    if content == "random":
        return np.random.default_rng(0).standard_normal(shape).astype(kind)
    if content in ("zeros", "new"):
        return np.zeros(shape, kind)
    if content == "arange":
        return np.arange(size).astype(kind).reshape(shape)
    array = np.load(content, allow_pickle=False)
    if array.shape != shape or array.dtype != kind:
        raise RelaxError(f"expected {kind} {shape} in '{content}', got {array.dtype} {array.shape}")
    return array


def _show(index: int, array: Array, folder: Path | None) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"arg{index}.npy", array)
    else:
        print(f"argument {index}: {np.array2string(array, threshold=16, precision=4)}")


if __name__ == "__main__":
    sys.exit(main())
