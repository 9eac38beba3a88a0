"""What host code calls of the CUDA driver, as LLVM IR: small functions over the table that the run time hands to entries.

The table's fields are pointers; ``functions`` and ``constants`` are arrays, by the numbers of the manifest's
``cuda.kernels`` and ``cuda.constants``. Each function gives 0, or what failed, as a number for ``relax_check``::

    2**48 + kernel * 2**32 + CUresult          kernel 65535: no launch failed, but a copy or an allocation
    2**49 + check                              a check that a kernel made (:mod:`.status_call`)
"""

from __future__ import annotations

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ..cpu.lower_checks import CHECK
from .tensor_map_call import DIMENSIONS, NUMBERS

__all__ = [
    "ALLOCATE", "CONSTANT", "FIELDS", "FOUND", "FREE", "LAUNCH", "READ", "STATUS", "TENSOR_MAP", "WRITE", "declare",
    "definitions",
]  # fmt: skip

LAUNCH = "relaxir_cuda_launch"
READ = "relaxir_cuda_read"
WRITE = "relaxir_cuda_write"
ALLOCATE = "relaxir_cuda_allocate"
FREE = "relaxir_cuda_free"
CONSTANT = "relaxir_cuda_constant"
STATUS = "relaxir_cuda_status"
FOUND = "relaxir_cuda_found"
TENSOR_MAP = "relaxir_cuda_tensor_map"

#: The fields of the table, in order. The functions have the driver's own signatures.
FIELDS = (
    "stream", "functions", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
    "cuStreamSynchronize", "cuMemsetD8Async", "cuMemAllocAsync", "cuMemFreeAsync", "cuTensorMapEncodeTiled", "constants",
    "status",
)  # fmt: skip

_I64, _PTR = "i64", "!llvm.ptr"
_SIGNATURES = {
    LAUNCH: ([_PTR, *[_I64] * 8, _PTR], _I64),
    READ: ([_PTR, _PTR, _PTR, _I64], _I64),
    WRITE: ([_PTR, _PTR, _PTR, _I64], _I64),
    ALLOCATE: ([_PTR, _PTR, _I64], _I64),
    FREE: ([_PTR, _PTR], _I64),
    CONSTANT: ([_PTR, _I64], _PTR),
    STATUS: ([_PTR], _PTR),
    FOUND: ([_PTR], _I64),
    TENSOR_MAP: ([_PTR, _PTR, _PTR, *[_I64] * NUMBERS], _I64),
}

# A number of a status that is beyond those of checks and of sizes (lowering/cpu/lower_checks, python/runtime/calls).
_FAILED = 1 << 48
_FOUND = 1 << 49
_NO_KERNEL = 0xFFFF

# CUtensorMapInterleave, Swizzle, L2promotion and FloatOOBfill.
_NO_INTERLEAVE, _SWIZZLE_128, _PROMOTE_256, _ZEROS = 0, 3, 3, 0

# The largest grid in its first direction; in the others it is the driver that refuses.
_MOST_BLOCKS = (1 << 31) - 1
_INVALID_VALUE = 1


def declare(module: ir.Operation) -> None:
    """Declares the functions, and the check of a status, where a module does not; in place."""
    known = {name_of(f) for f in functions(module)}
    i1, i64 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)
    signatures = {name: ([*map(ir.Type.parse, taken)], [ir.Type.parse(given)]) for name, (taken, given) in _SIGNATURES.items()}
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        for name, signature in {**signatures, CHECK: ([i1, i64], [])}.items():
            if name not in known:
                func.FuncOp(name, signature, visibility="private")


def definitions() -> str:
    """The functions' definitions, LLVM IR in opaque pointers."""
    status, stream = _status, _field("stream", "stream")
    return f"""
define internal i64 @{LAUNCH}(ptr %driver, i64 %kernel, i64 %gx, i64 %gy, i64 %gz, i64 %bx, i64 %by, i64 %bz,
                             i64 %shared, ptr %values) {{
  %xy = mul i64 %gx, %gy
  %all = mul i64 %xy, %gz
  %none = icmp eq i64 %all, 0
  br i1 %none, label %done, label %some
done:
  ret i64 0
some:
  %large = icmp ugt i64 %gx, {_MOST_BLOCKS}
  br i1 %large, label %refused, label %run
refused:
{status("%kernel", str(_INVALID_VALUE), "r")}
run:
{stream}
{_field("functions", "functions")}
{_field("cuLaunchKernel", "launch")}
  %place = getelementptr ptr, ptr %functions, i64 %kernel
  %function = load ptr, ptr %place
{_narrowed("gx", "gy", "gz", "bx", "by", "bz", "shared")}
  %result = call i32 %launch(ptr %function, i32 %gx.n, i32 %gy.n, i32 %gz.n, i32 %bx.n, i32 %by.n, i32 %bz.n,
                            i32 %shared.n, ptr %stream, ptr %values, ptr null)
{status("%kernel", "%result")}
}}
define internal i64 @{READ}(ptr %driver, ptr %source, ptr %target, i64 %bytes) {{
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %done, label %some
done:
  ret i64 0
some:
{stream}
{_field("cuMemcpyDtoHAsync_v2", "copy")}
{_field("cuStreamSynchronize", "wait")}
  %from = ptrtoint ptr %source to i64
  %copied = call i32 %copy(ptr %target, i64 %from, i64 %bytes, ptr %stream)
  %good = icmp eq i32 %copied, 0
  br i1 %good, label %there, label %failed
failed:
{status(str(_NO_KERNEL), "%copied", "c")}
there:
  %result = call i32 %wait(ptr %stream)
{status(str(_NO_KERNEL), "%result")}
}}
define internal i64 @{WRITE}(ptr %driver, ptr %source, ptr %target, i64 %bytes) {{
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %done, label %some
done:
  ret i64 0
some:
{stream}
{_field("cuMemcpyHtoDAsync_v2", "copy")}
  %to = ptrtoint ptr %target to i64
  %result = call i32 %copy(i64 %to, ptr %source, i64 %bytes, ptr %stream)
{status(str(_NO_KERNEL), "%result")}
}}
define internal i64 @{ALLOCATE}(ptr %driver, ptr %place, i64 %bytes) {{
{stream}
{_field("cuMemAllocAsync", "allocate")}
  %none = icmp eq i64 %bytes, 0
  %some = select i1 %none, i64 1, i64 %bytes
  %result = call i32 %allocate(ptr %place, i64 %some, ptr %stream)
{status(str(_NO_KERNEL), "%result")}
}}
define internal i64 @{FREE}(ptr %driver, ptr %start) {{
{stream}
{_field("cuMemFreeAsync", "free")}
  %address = ptrtoint ptr %start to i64
  %result = call i32 %free(i64 %address, ptr %stream)
{status(str(_NO_KERNEL), "%result")}
}}
define internal ptr @{CONSTANT}(ptr %driver, i64 %number) {{
{_field("constants", "constants")}
  %place = getelementptr i64, ptr %constants, i64 %number
  %address = load i64, ptr %place
  %start = inttoptr i64 %address to ptr
  ret ptr %start
}}
define internal ptr @{STATUS}(ptr %driver) {{
{_field("status", "word")}
  ret ptr %word
}}
define internal i64 @{FOUND}(ptr %driver) {{
  %place = alloca i64
{_field("status", "word")}
  %failed = call i64 @{READ}(ptr %driver, ptr %word, ptr %place, i64 8)
  %good = icmp eq i64 %failed, 0
  br i1 %good, label %there, label %left
left:
  ret i64 %failed
there:
  %number = load i64, ptr %place
  %none = icmp eq i64 %number, 0
  %check = sub i64 %number, 1
  %found = or i64 %check, {_FOUND}
  %given = select i1 %none, i64 0, i64 %found
  ret i64 %given
}}
{_tensor_map()}
"""


def _tensor_map() -> str:
    """The function that has a map encoded: lines of 128 bytes twisted, zeros where a box is outside of the tensor."""
    arrays = {"size": ("i64", DIMENSIONS), "stride": ("i64", DIMENSIONS - 1), "box": ("i32", DIMENSIONS)}
    numbers = [f"%{name}{i}" for name, (_, count) in arrays.items() for i in range(count)]
    lines = [f"  %{name} = alloca {kind}, i64 {count}" for name, (kind, count) in arrays.items()]
    lines += [f"  %step = alloca i32, i64 {DIMENSIONS}"]
    for name, (kind, count) in arrays.items():
        for i in range(count):
            value = f"%{name}{i}"
            if kind == "i32":
                lines.append(f"  {value}.n = trunc i64 {value} to i32")
                value += ".n"
            lines += _stored(f"%{name}", kind, i, value)
    for i in range(DIMENSIONS):
        lines += _stored("%step", "i32", i, "1")
    taken = ", ".join(f"i64 {n}" for n in ("%kind", "%rank", *numbers))
    return "\n".join([
        f"define internal i64 @{TENSOR_MAP}(ptr %driver, ptr %map, ptr %tensor, {taken}) {{",
        *lines, _field("cuTensorMapEncodeTiled", "encode"), _narrowed("kind", "rank"),
        "  %result = call i32 %encode(ptr %map, i32 %kind.n, i32 %rank.n, ptr %tensor, ptr %size, ptr %stride, ptr %box,",
        f"      ptr %step, i32 {_NO_INTERLEAVE}, i32 {_SWIZZLE_128}, i32 {_PROMOTE_256}, i32 {_ZEROS})",
        _status(str(_NO_KERNEL), "%result"), "}",
    ])  # fmt: skip


def _stored(array: str, kind: str, number: int, value: str) -> list[str]:
    place = f"{array}{number}.place" if number else array
    moved = [f"  {place} = getelementptr {kind}, ptr {array}, i64 {number}"] if number else []
    return [*moved, f"  store {kind} {value}, ptr {place}"]


def _field(name: str, value: str) -> str:
    number = FIELDS.index(name)
    return f"  %{value}.place = getelementptr ptr, ptr %driver, i64 {number}\n  %{value} = load ptr, ptr %{value}.place"


def _narrowed(*names: str) -> str:
    return "\n".join(f"  %{name}.n = trunc i64 %{name} to i32" for name in names)


def _status(kernel: str, result: str, prefix: str = "s") -> str:
    """Returns 0 for CUDA_SUCCESS, else what failed."""
    return "\n".join([
        f"  %{prefix}.wide = zext i32 {result} to i64",
        f"  %{prefix}.high = shl i64 {kernel}, 32",
        f"  %{prefix}.both = or i64 %{prefix}.high, %{prefix}.wide",
        f"  %{prefix}.number = or i64 %{prefix}.both, {_FAILED}",
        f"  %{prefix}.good = icmp eq i32 {result}, 0",
        f"  %{prefix}.given = select i1 %{prefix}.good, i64 0, i64 %{prefix}.number",
        f"  ret i64 %{prefix}.given",
    ])  # fmt: skip
