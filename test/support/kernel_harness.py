"""Memref-level functions -> kernel templates -> LLVM as kernels are compiled by it, called with NumPy arrays."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np

from relaxir.dialect.bindings import ir, passmanager
from relaxir.dialect.context import UPSTREAM
from relaxir.dialect.functions import functions
from relaxir.lowering.cpu.codegen import object_code
from relaxir.lowering.cpu.kernels import lower_kernels
from relaxir.lowering.kernels.expand.expand_fma import expand_fma
from relaxir.lowering.kernels.expand.expand_math import expand_math
from relaxir.lowering.kernels.expand.expand_narrow_floats import expand_narrow_floats
from relaxir.lowering.llvm_text import llvm_ir
from relaxir.lowering.target import Target
from relaxir.runtime.library import Library
from support.kept_kernels import kept

TO_LLVM = (
    "builtin.module(canonicalize,cse,expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-vector-to-llvm,"
    "convert-math-to-llvm,convert-math-to-libm,finalize-memref-to-llvm,convert-func-to-llvm,"
    "convert-arith-to-llvm,convert-ub-to-llvm,convert-cf-to-llvm,convert-index-to-llvm,cse,reconcile-unrealized-casts)"
)


def lower_to_vectors(module: ir.Operation, target: Target) -> None:
    """Kernels become loops over vectors of what the target has instructions for."""
    lower_kernels(module, functions(module), target)
    for expand in (expand_math, expand_fma, expand_narrow_floats):
        expand(module, target)


class Compiled:
    """A function called with arrays (memrefs) and Python numbers (index arguments)."""

    def __init__(self, text: str, target: Target | None = None, name: str = "f"):
        # Loading all dialects there are takes 5 ms, these 1.
        with ir.Context(load_on_create_dialects=UPSTREAM), ir.Location.unknown():
            module = ir.Module.parse(text)
            lower_to_vectors(module.operation, target or Target.host())
            module.operation.verify()
            for operation in module.body.operations:
                operation.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
            passmanager.PassManager.parse(TO_LLVM).run(module.operation)
            self.module, self.text = module, str(module)
            symbol = f"_mlir_ciface_{name}"
            # For this machine, whichever one the kernels are for.
            with kept():
                code = object_code(llvm_ir(module.operation), Target.host()).archive()
            self.library = Library.from_object(code, [symbol])
            self.function = ctypes.CFUNCTYPE(None)(self.library.addresses[symbol])

    def bind(self, *arguments: object):
        held = [_argument(a) for a in arguments]

        def call() -> None:
            self.function(*held)

        call.held = (held, arguments)
        return call

    def __call__(self, *arguments: object) -> None:
        self.bind(*arguments)()


def _argument(value: object) -> object:
    """What the C interface takes: a pointer to a memref descriptor, or an index."""
    if not isinstance(value, np.ndarray):
        return ctypes.c_int64(int(value))

    class Descriptor(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_int64),
            ("aligned", ctypes.c_int64),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * value.ndim),
            ("strides", ctypes.c_int64 * value.ndim),
        ]

    strides = [s // value.itemsize for s in value.strides]
    data = value.ctypes.data
    sized = ctypes.c_int64 * value.ndim
    return ctypes.pointer(Descriptor(data, data, 0, sized(*value.shape), sized(*strides)))


NUMPY = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
}  # fmt: skip


def narrower(bits: int) -> Target:
    """The host pretending to have narrower vectors, and no tile registers."""
    host = Target.host()
    features = ",".join(f for f in host.features.split(",") if not f.startswith("+amx-"))
    return Target(host.triple, host.cpu, features, bits, 16)


def generic(
    maps: list[str],
    kinds: str,
    types: list[str],
    body: str,
    attributes: str = "",
    outputs: int = 1,
    names: list[str] | None = None,
) -> str:
    """A linalg.generic on %a0, %a1... with body arguments %x0, %x1...; maps as ``"(i, j) -> (j, i)"``, kinds as ``"pr"``."""
    names = names or [f"%a{i}" for i in range(len(types))]
    split = len(types) - outputs
    attrs = ", ".join(f"affine_map<{m}>" for m in maps)
    iterators = ", ".join('"parallel"' if k == "p" else '"reduction"' for k in kinds)
    arguments = ", ".join(f"%x{i}: {element_of(t)}" for i, t in enumerate(types))

    def operands(part: slice) -> str:
        return f"{', '.join(names[part])} : {', '.join(types[part])}"

    ins = f"ins({operands(slice(0, split))}) " if split else ""
    return (
        f"linalg.generic {{indexing_maps = [{attrs}], iterator_types = [{iterators}]{attributes}}}\n"
        f"  {ins}outs({operands(slice(split, len(types)))}) {{\n^bb0({arguments}):\n{body}\n}}"
    )


def function(types: list[str], body: str, name: str = "f") -> str:
    """A function of %a0, %a1... with that body."""
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    return f"func.func @{name}({arguments}) {{\n{body}\nreturn\n}}\n"


def grid(map_text: str, sizes: dict[str, int]) -> tuple[np.ndarray, ...]:
    """The indices that a map gives over the whole loop nest: NumPy's idea of the same map."""
    left, right = map_text.split("->")
    names = [n.strip() for n in left.strip()[1:-1].split(",")]
    values = dict(zip(names, np.indices([sizes[n] for n in names]), strict=True))
    results = right.strip()[1:-1].replace("floordiv", "//").replace("mod", "%")
    any_value = next(iter(values.values()))
    return tuple(np.broadcast_to(eval(e, {}, values), any_value.shape) for e in results.split(",") if e.strip())


def read(array: np.ndarray, map_text: str, sizes: dict[str, int]) -> np.ndarray:
    """The elements that an index map reads, over the whole loop nest."""
    indices = grid(map_text, sizes)
    shape = tuple(sizes[n.strip()] for n in map_text.split("->")[0].strip()[1:-1].split(","))
    return array[indices] if indices else np.broadcast_to(array, shape)


def arrays_for(maps: list[str], sizes: dict[str, int], element: str = "f32") -> list[np.ndarray]:
    """Random arrays just large enough for the maps."""
    shapes = [tuple(int(np.max(i)) + 1 for i in grid(m, sizes)) for m in maps]
    return [random(shape, element, seed) for seed, shape in enumerate(shapes)]


def memref(shape: tuple[int, ...], element: str = "f32", dynamic: bool = False) -> str:
    dims = "".join(f"{'?' if dynamic else n}x" for n in shape)
    return f"memref<{dims}{element}>"


def element_of(kind: str) -> str:
    """The element type of a memref type; other types as they are."""
    return kind[len("memref<") : kind.rindex(">")].split(",")[0].split("x")[-1] if kind.startswith("memref<") else kind


def random(shape: tuple[int, ...], element: str = "f32", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if element.startswith("i"):
        return rng.integers(-100, 100, shape).astype(NUMPY[element])
    return rng.standard_normal(shape).astype(NUMPY[element])
