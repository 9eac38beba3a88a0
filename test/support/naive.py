"""Runs linalg on tensors on NumPy arrays by scalar loops that LLVM does not optimise: independent of our own CPU pipeline."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import llvmlite.binding as llvm
import numpy as np

from relaxir.dialect.bindings import ir, passmanager
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import find_function, functions, name_of
from relaxir.dialect.reference.interpreter import evaluate
from relaxir.lowering.cpu.bufferize import hide_bounds
from relaxir.lowering.cpu.carry_in_place import carry_in_place
from relaxir.lowering.kernels.expand.expand_narrow_floats import expand_narrow_floats
from relaxir.lowering.linalg.key_blocks import KeyBlocks
from relaxir.lowering.linalg.to_linalg import relax_to_linalg
from relaxir.lowering.llvm_text import llvm_ir
from relaxir.lowering.target import Target

__all__ = [
    "Case",
    "Outcome",
    "assert_close",
    "check",
    "compare",
    "lowered",
    "module_of",
    "random_array",
    "run_linalg",
    "tensor",
]

Array = np.ndarray

_CLEAN = "builtin.module(canonicalize,cse)"
_BUFFERIZE = (
    "builtin.module(one-shot-bufferize{{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops={loops}}},canonicalize,cse)"
)

_TO_LLVM = (
    "builtin.module(func.func(convert-linalg-to-loops),fold-memref-alias-ops,expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,arith-expand{include-bf16=true},func.func(convert-math-to-llvm),convert-math-to-libm,convert-to-llvm,"
    "reconcile-unrealized-casts)"
)

_FUSED = "builtin.module(canonicalize,cse,func.func(linalg-fuse-elementwise-ops),canonicalize,cse)"

#: Relative tolerance of a result by its dtype: one rounding, or a few of f32 where sums are taken in another order.
_TOLERANCE = {
    "float64": 1e-12,
    "float32": 2e-5,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float8_e4m3fn": 0.13,
    "float8_e5m2": 0.26,
}


@dataclass
class Outcome:
    """What a run gave.

    Attributes:
        results: arrays as they are stored: truth values and narrow numbers as bytes.
        failed: numbers of the run-time checks that failed.
    """

    results: list[Array]
    failed: list[int]


def lowered(text: str, tile: int = 32, fuse: bool = False, key_blocks: KeyBlocks | None = None) -> ir.Module:
    """Parses a relax module and lowers it to linalg; with ``fuse``, as MLIR's elementwise fusion leaves it."""
    with new_context():
        module = ir.Module.parse(text)
        module.operation.verify()
        relax_to_linalg(module.operation, tile=tile, key_blocks=key_blocks)
        module.operation.verify()
        if fuse:
            passmanager.PassManager.parse(_FUSED).run(module.operation)
        return module


def run_linalg(module: ir.Module, inputs: Sequence[Array], name: str = "main") -> Outcome:
    """Runs a function of a module on plain tensors; the module is consumed."""
    results = _mark(module, name)
    with module.context, ir.Location.unknown():
        allocates = carry_in_place(module.operation)
        passmanager.PassManager.parse(_CLEAN).run(module.operation)
        hide_bounds(module.operation)
        passmanager.PassManager.parse(_BUFFERIZE.format(loops=int(allocates))).run(module.operation)
        _copies_to_generic(module)
        expand_narrow_floats(module.operation, Target.host())
        passmanager.PassManager.parse(_TO_LLVM).run(module.operation)
        text = llvm_ir(module.operation)
    failed: list[int] = []
    check = ctypes.CFUNCTYPE(None, ctypes.c_bool, ctypes.c_int64)(lambda ok, number: None if ok else failed.append(number))
    engine = _engine(text, {f"{_C}relax_check": check})
    returned = _descriptors(results)()
    arguments = [_Memref.of(np.ascontiguousarray(a).reshape(np.shape(a))) for a in inputs]
    pointers = [ctypes.byref(d) for d in ([returned] if results else []) + [a.descriptor for a in arguments]]
    ctypes.CFUNCTYPE(None)(engine.get_function_address(f"{_C}{name}"))(*pointers)
    return Outcome([_array(getattr(returned, f"result{i}"), dtype) for i, (_, dtype) in enumerate(results)], failed)


def _mark(module: ir.Module, name: str) -> list[tuple[int, np.dtype]]:
    """Asks for C interfaces; returns rank and dtype of each result."""
    with module.context:
        function = find_function(module, name)
        for f in functions(module):
            if f is function or name_of(f) in (name, "relax_check"):
                f.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        return [(t.rank, _stored_dtype(t.element_type)) for t in signature.results]


#: What MLIR puts in front of the name of a function that takes pointers to descriptors.
_C = "_mlir_ciface_"


def _engine(text: str, known: Mapping[str, object]) -> llvm.ExecutionEngine:
    """Code of LLVM IR, for this machine, that calls known functions of ctypes.

    MLIR's own engine takes four times as long.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = Target.host()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(target.cpu, target.features, opt=0)
    module = llvm.parse_assembly(text, llvm.create_context())
    engine = llvm.create_mcjit_compiler(module, machine)
    for function in [f for f in module.functions if f.name in known]:
        engine.add_global_mapping(function, ctypes.cast(known[function.name], ctypes.c_void_p).value)
    engine.finalize_object()
    return engine


def _copies_to_generic(module: ir.Module) -> None:
    """MLIR lowers ``memref.copy`` between strided buffers to a call of its own runtime library, which the wheel lacks."""
    copies: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.copy":
            copies.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    for copy in copies:
        type_ = copy.operands[0].type
        identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
        attributes = {
            "indexing_maps": ir.ArrayAttr.get([identity] * 2),
            "iterator_types": ir.ArrayAttr.get([parallel] * type_.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        }
        with ir.InsertionPoint(copy), copy.location:
            generic = ir.Operation.create("linalg.generic", [], list(copy.operands), attributes, regions=1)
            block = ir.Block.create_at_start(generic.regions[0], [type_.element_type] * 2, [copy.location] * 2)
            with ir.InsertionPoint(block):
                ir.Operation.create("linalg.yield", [], [block.arguments[0]])
        copy.erase()


def _stored_dtype(element: ir.Type) -> np.dtype:
    from relaxir.dialect.dtypes import numpy_dtype

    return numpy_dtype(element)


@dataclass
class _Memref:
    """A memref descriptor, with the array that it points into."""

    array: Array
    descriptor: ctypes.Structure

    @staticmethod
    def of(array: Array) -> _Memref:
        descriptor = _descriptor(array.ndim)()
        pointer = array.ctypes.data
        descriptor.allocated = descriptor.aligned = pointer
        descriptor.offset = 0
        for i, (size, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
            descriptor.sizes[i], descriptor.strides[i] = size, stride // array.itemsize
        return _Memref(array, descriptor)


def _descriptor(rank: int) -> type[ctypes.Structure]:
    dims = [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)] if rank else []
    fields = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64), *dims]
    return type(f"Memref{rank}", (ctypes.Structure,), {"_fields_": fields})


def _descriptors(results: Sequence[tuple[int, np.dtype]]) -> type[ctypes.Structure]:
    fields = [(f"result{i}", _descriptor(rank)) for i, (rank, _) in enumerate(results)]
    return type("Results", (ctypes.Structure,), {"_fields_": fields})


def _array(descriptor: ctypes.Structure, dtype: np.dtype) -> Array:
    shape = list(getattr(descriptor, "sizes", []))
    strides = [s * dtype.itemsize for s in getattr(descriptor, "strides", [])]
    if 0 in shape:
        return np.zeros(shape, dtype)
    extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
    data = (ctypes.c_char * extent).from_address(descriptor.aligned + descriptor.offset * dtype.itemsize)
    return np.lib.stride_tricks.as_strided(np.frombuffer(data, dtype), shape, strides).copy()


def compare(
    text: str,
    *inputs: Array,
    tile: int = 32,
    fuse: bool = False,
    rtol: float | None = None,
    names: Sequence[str] = (),
    key_blocks: KeyBlocks | None = None,
) -> list[Array]:
    """Asserts that lowering ``@main`` keeps its meaning on these inputs; returns the reference's results."""
    with new_context():
        expected = evaluate(ir.Module.parse(text), "main", list(inputs))
    outcome = run_linalg(lowered(text, tile, fuse, key_blocks), [stored(a) for a in inputs])
    assert not outcome.failed
    assert len(outcome.results) == len(expected)
    for i, (got, want) in enumerate(zip(outcome.results, expected, strict=True)):
        assert_close(got, want, rtol, names[i] if names else f"result {i}")
    return list(expected)


def stored(array: Array) -> Array:
    """An array as lowered code takes it."""
    array = np.asarray(array)
    if array.dtype == np.bool_ or str(array.dtype).startswith(("int4", "uint4", "float8")):
        return array.view(np.int8)
    if array.dtype.kind == "u":
        return array.view(f"i{array.dtype.itemsize}")
    return array


def assert_close(got: Array, want: Array, rtol: float | None = None, name: str = "result") -> None:
    """Compares a stored result with the reference's, by the tolerance of its dtype; integers must be equal."""
    assert got.shape == want.shape, f"{name}: shape {got.shape}, expected {want.shape}"
    assert got.dtype.itemsize == want.dtype.itemsize
    got = got if got.dtype == want.dtype else got.view(want.dtype)
    tolerance = _TOLERANCE.get(str(want.dtype))
    if tolerance is None:
        bits = str(want.dtype) == "float8_e8m0fnu"  # NumPy knows no NaN of theirs
        np.testing.assert_array_equal(*((a.view(np.uint8) if bits else a) for a in (got, want)), name)
        return
    wide = np.float64
    rtol = tolerance if rtol is None else rtol
    magnitude = np.abs(want.astype(wide))
    scale = np.max(magnitude[np.isfinite(magnitude)], initial=0.0)
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=rtol * scale, equal_nan=True, err_msg=name)


def tensor(shorthand: str) -> str:
    """``"n, 64: f32"`` as the MLIR type ``tensor<?x64xf32, {sym = ["n"]}>``."""
    shape, dtype = _parts(shorthand)
    text = "x".join([*(d if d.isdigit() else "?" for d in shape), dtype])
    symbols = [d for d in shape if not d.isdigit()]
    encoding = ", ".join(f'"{s}"' for s in symbols)
    return f"tensor<{text}, {{sym = [{encoding}]}}>" if symbols else f"tensor<{text}>"


def _parts(shorthand: str) -> tuple[list[str], str]:
    shape, _, dtype = shorthand.rpartition(":")
    return [d.strip() for d in shape.split(",") if d.strip()], dtype.strip()


@dataclass(frozen=True)
class Case:
    """One op to test.

    Attributes:
        name: the op, without ``relax.``.
        operands, results: types in shorthand.
        attributes: as MLIR text, without braces.
        values: operands that are not random, by position.
    """

    name: str
    operands: Sequence[str]
    results: str | Sequence[str]
    attributes: str = ""
    values: Mapping[int, Array] = field(default_factory=dict)

    @property
    def result_types(self) -> list[str]:
        return [tensor(r) for r in ([self.results] if isinstance(self.results, str) else self.results)]


def module_of(cases: Sequence[Case]) -> str:
    """A module whose ``@main`` holds every case, each on its own arguments."""
    arguments: list[str] = []
    lines: list[str] = []
    returned: list[str] = []
    types = [t for case in cases for t in case.result_types]
    for number, case in enumerate(cases):
        operands = [tensor(o) for o in case.operands]
        names = [f"%a{number}_{i}" for i in range(len(operands))]
        arguments += [f"{n}: {t}" for n, t in zip(names, operands, strict=True)]
        made = [f"%r{number}_{i}" for i in range(len(case.result_types))]
        returned += made
        signature = f"({', '.join(operands)}) -> ({', '.join(case.result_types)})"
        lines.append(f'  {", ".join(made)} = "relax.{case.name}"({", ".join(names)}) {{{case.attributes}}} : {signature}')
    body = "\n".join([*lines, f"  return {', '.join(returned)} : {', '.join(types)}"])
    return f"func.func @main({', '.join(arguments)}) -> ({', '.join(types)}) {{\n{body}\n}}"


def random_array(shorthand: str, rng: np.random.Generator, **sizes: int) -> Array:
    """Values for a type in shorthand: normal numbers, small integers, truth values."""
    from relaxir.dialect.dtypes import numpy_dtype
    from relaxir.dialect.symbolic import evaluate as size_of
    from relaxir.dialect.symbolic import parse

    shape, dtype = _parts(shorthand)
    dims = [size_of(parse(d), sizes) for d in shape]
    kind = numpy_dtype(dtype)
    if kind == np.bool_:
        return rng.random(dims) < 0.5
    if "f" in dtype:
        return np.asarray(rng.standard_normal(dims)).astype(kind)
    low, high = (0, 8) if dtype.startswith("u") else (-7, 8)
    return np.asarray(rng.integers(low, high, dims)).astype(kind)


def check(
    *cases: Case,
    seed: int = 0,
    tile: int = 32,
    fuse: bool = False,
    rtol: float | None = None,
    key_blocks: KeyBlocks | None = None,
    **sizes: int,
) -> list[Array]:
    """Compares ops, lowered in one module, with their reference on random values; symbols have ``sizes``."""
    rng = np.random.default_rng(seed)
    inputs = [
        case.values[i] if i in case.values else random_array(operand, rng, **sizes)
        for case in cases
        for i, operand in enumerate(case.operands)
    ]
    names = [f"{case.name} {case.operands} {case.attributes}" for case in cases for _ in case.result_types]
    return compare(module_of(cases), *inputs, tile=tile, fuse=fuse, rtol=rtol, names=names, key_blocks=key_blocks)
