"""Runs code generated for processors that this machine is not, by LLVM IR that means the same as their instructions.

The text of a kernel is vectors of any width and a few intrinsics of the target. Intrinsics become calls of functions in generic
LLVM IR, and the host's code generator splits the vectors; what ran on the other processor then runs here, more slowly.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import relaxir as rx
from relaxir.lowering.target import Target
from relaxir.runtime.executable import Executable
from support.emulated_tiles import with_emulated_tiles
from support.stages import executable_of, llvm_text, lowered, target_named

__all__ = ["compile_for", "emulated", "generated", "runs_natively"]


def runs_natively(target: Target) -> bool:
    """Whether this machine executes the target's instructions."""
    host = Target.host()
    return target.triple == host.triple and {f for f in target.features.split(",") if f} <= set(host.features.split(","))


def compile_for(module: rx.Module, name: str, passes: str | None = None, checked: bool = False) -> Executable:
    """An executable of the code that ``cpu:<name>`` gets, emulated where this machine lacks its instructions."""
    target = target_named(f"cpu:{name}")
    if runs_natively(target):
        return rx.compile(module, f"cpu:{name}", pipeline=passes, cache=False, checked=checked)
    return executable_of(lowered(module, target, passes, checked=checked), emulated, Target.host())


def generated(module: rx.Module, name: str, passes: str | None = None) -> str:
    """The LLVM IR text that ``cpu:<name>`` gets."""
    return llvm_text(lowered(module, Target.parse(f"cpu:{name}"), passes))


def emulated(text: str) -> str:
    """LLVM IR text without instructions that only some processors have. Raises AssertionError at an unknown intrinsic."""
    needed: dict[str, str] = {}
    text = with_emulated_tiles(text)
    for pattern, make in _INSTRUCTIONS:

        def replaced(match: re.Match[str], make: Callable[[re.Match[str]], _Call] = make) -> str:
            call = make(match)
            needed[call.name] = call.definition
            return f"call {call.result} @{call.name}({call.arguments})"

        text = re.sub(pattern, replaced, text)
    kept = [line for line in text.split("\n") if not re.match(r"declare .* @llvm\.(x86|aarch64)\.", line)]
    text = "\n".join(kept)
    left = re.findall(r"@llvm\.(?:x86|aarch64)\.[\w.]+", text)
    assert not left, f"no emulation of {left[0]}"
    # Inlined into unrolled loops they would take LLVM most of the time of a test.
    return text + "\n".join(["", *needed.values()]).replace(") {\n", ") noinline {\n")


@dataclass(frozen=True)
class _Call:
    """A call of an emulating function, and that function."""

    name: str
    result: str
    arguments: str
    definition: str


def _vector(count: int, element: str) -> str:
    return f"<{count} x {element}>" if count else element


def _splat(count: int, element: str, value: int) -> str:
    return f"splat ({element} {value})" if count else str(value)


def _round_function(name: str, count: int) -> str:
    """f32 to bf16: to nearest even, a NaN becomes quiet. (The instruction of x86 gives zero for what is below the normal.)"""
    ints, halves, floats, narrow, bools = (_vector(count, e) for e in ("i32", "i16", "float", "bfloat", "i1"))
    return f"""define hidden {narrow} @{name}({floats} %x) {{
  %bits = bitcast {floats} %x to {ints}
  %upper = lshr {ints} %bits, {_splat(count, "i32", 16)}
  %odd = and {ints} %upper, {_splat(count, "i32", 1)}
  %half = add {ints} %bits, {_splat(count, "i32", 0x7FFF)}
  %sum = add {ints} %half, %odd
  %near = lshr {ints} %sum, {_splat(count, "i32", 16)}
  %quiet = or {ints} %upper, {_splat(count, "i32", 0x40)}
  %magnitude = and {ints} %bits, {_splat(count, "i32", 0x7FFFFFFF)}
  %nan = icmp ugt {ints} %magnitude, {_splat(count, "i32", 0x7F800000)}
  %chosen = select {bools} %nan, {ints} %quiet, {ints} %near
  %short = trunc {ints} %chosen to {halves}
  %result = bitcast {halves} %short to {narrow}
  ret {narrow} %result
}}
"""


def _rounded(match: re.Match[str]) -> _Call:
    count = int(match["count"] or 0)
    arguments = f"{_vector(count, 'float')} {match['x']}"
    name = f"emulate.round.{count}"
    return _Call(name, _vector(count, "bfloat"), arguments, _round_function(name, count))


def _from_integer(match: re.Match[str]) -> _Call:
    """An integer to bf16: by f32, as processors without an instruction from integers have it."""
    count, kind, signed = int(match["count"] or 0), match["kind"], match["signed"]
    name = f"emulate.{signed}.{kind}.{count}"
    integers, floats, narrow = (_vector(count, e) for e in (kind, "float", "bfloat"))
    definition = f"""{_round_function(f"{name}.round", count)}
define hidden {narrow} @{name}({integers} %x) {{
  %wide = {signed}itofp {integers} %x to {floats}
  %result = call {narrow} @{name}.round({floats} %wide)
  ret {narrow} %result
}}
"""
    return _Call(name, narrow, f"{integers} {match['x']}", definition)


def _widened(match: re.Match[str]) -> _Call:
    count = int(match["count"] or 0)
    ints, halves, floats, narrow = (_vector(count, e) for e in ("i32", "i16", "float", "bfloat"))
    name = f"emulate.widen.{count}"
    definition = f"""define hidden {floats} @{name}({narrow} %x) {{
  %bits = bitcast {narrow} %x to {halves}
  %wide = zext {halves} %bits to {ints}
  %upper = shl {ints} %wide, {_splat(count, "i32", 16)}
  %result = bitcast {ints} %upper to {floats}
  ret {floats} %result
}}
"""
    return _Call(name, floats, f"{narrow} {match['x']}", definition)


def _bf16_pairs(match: re.Match[str]) -> _Call:
    """``vdpbf16ps``, as Intel's manual has it.

    The second elements are multiplied and added first; each sum is rounded once, to nearest even; what is below the normal
    numbers counts as zero, in elements, sums and results.
    """
    lanes = int(match["bits"]) // 32
    name, result, ints = f"emulate.dpbf16ps.{lanes}", f"<{lanes} x float>", f"<{lanes} x i32>"
    normal = f"emulate.normal.{lanes}"
    definition = f"""{_pairs_begin(name, lanes)}
  %first = call {result} @llvm.fma.v{lanes}f32({result} %a.1, {result} %b.1, {result} %sum.0)
  %first.bits = bitcast {result} %first to {ints}
  %sum.1 = call {result} @{normal}({ints} %first.bits)
  %second = call {result} @llvm.fma.v{lanes}f32({result} %a.0, {result} %b.0, {result} %sum.1)
  %second.bits = bitcast {result} %second to {ints}
  %sum.2 = call {result} @{normal}({ints} %second.bits)
  ret {result} %sum.2
}}
"""
    return _Call(name, result, match["arguments"], definition)


def _pairs_begin(name: str, lanes: int) -> str:
    """The start of a function of a sum and two vectors of pairs: what is below the normal numbers is zero.

    ``%sum.0``, ``%a.0`` and ``%b.0`` are the sum and the first elements, ``%a.1`` and ``%b.1`` the second ones.
    """
    result, pairs, ints, normal = f"<{lanes} x float>", f"<{2 * lanes} x bfloat>", f"<{lanes} x i32>", f"emulate.normal.{lanes}"
    return f"""define hidden {result} @{normal}({ints} %bits) {{
  %exponent = and {ints} %bits, splat (i32 {0x7F800000})
  %sign = and {ints} %bits, splat (i32 {-0x80000000})
  %small = icmp eq {ints} %exponent, zeroinitializer
  %kept = select <{lanes} x i1> %small, {ints} %sign, {ints} %bits
  %result = bitcast {ints} %kept to {result}
  ret {result} %result
}}
define hidden {result} @{name}({result} %sum, {pairs} %a, {pairs} %b) {{
  %sum.bits = bitcast {result} %sum to {ints}
  %sum.0 = call {result} @{normal}({ints} %sum.bits)
  %a.pair = bitcast {pairs} %a to {ints}
  %b.pair = bitcast {pairs} %b to {ints}
  %a.high = and {ints} %a.pair, splat (i32 {-0x10000})
  %b.high = and {ints} %b.pair, splat (i32 {-0x10000})
  %a.low = shl {ints} %a.pair, splat (i32 16)
  %b.low = shl {ints} %b.pair, splat (i32 16)
  %a.1 = call {result} @{normal}({ints} %a.high)
  %b.1 = call {result} @{normal}({ints} %b.high)
  %a.0 = call {result} @{normal}({ints} %a.low)
  %b.0 = call {result} @{normal}({ints} %b.low)"""


def _scaled(match: re.Match[str]) -> _Call:
    """``vscalefps`` of numbers near 1 (or NaN) by whole exponents from -252 to 252: two factors, the first of them exact."""
    lanes = int(match["bits"]) // 32
    name, result, ints = f"emulate.scalef.{lanes}", f"<{lanes} x float>", f"<{lanes} x i32>"
    others = f"{result}, i{max(8, lanes)}" + ", i32" * (lanes == 16)
    definition = f"""define hidden {result} @{name}({result} %x, {result} %n, {others}) {{
  %known = fcmp ord {result} %n, zeroinitializer
  %number = select <{lanes} x i1> %known, {result} %n, {result} zeroinitializer
  %exponent = fptosi {result} %number to {ints}
  %half = ashr {ints} %exponent, splat (i32 1)
  %rest = sub {ints} %exponent, %half
  %half.biased = add {ints} %half, splat (i32 127)
  %rest.biased = add {ints} %rest, splat (i32 127)
  %half.bits = shl {ints} %half.biased, splat (i32 23)
  %rest.bits = shl {ints} %rest.biased, splat (i32 23)
  %s = bitcast {ints} %half.bits to {result}
  %t = bitcast {ints} %rest.bits to {result}
  %exact = fmul {result} %x, %s
  %product = fmul {result} %exact, %t
  ret {result} %product
}}
"""
    return _Call(name, result, match["arguments"], definition)


def _neon_pairs(match: re.Match[str]) -> _Call:
    """``bfdot``, as Arm's manual has it without FEAT_EBF16.

    Products are added first, then to the sum; both additions round to odd, and what is below the normal numbers is zero.
    """
    name, ints, odd = "emulate.bfdot", "<4 x i32>", "emulate.odd"
    definition = f"""{_pairs_begin(name, 4)}
  %x.product = fmul <4 x float> %a.0, %b.0
  %y.product = fmul <4 x float> %a.1, %b.1
  %x.bits = bitcast <4 x float> %x.product to {ints}
  %y.bits = bitcast <4 x float> %y.product to {ints}
  %x = call <4 x float> @emulate.normal.4({ints} %x.bits)
  %y = call <4 x float> @emulate.normal.4({ints} %y.bits)
  %both = call <4 x float> @{odd}(<4 x float> %x, <4 x float> %y)
  %total = call <4 x float> @{odd}(<4 x float> %sum.0, <4 x float> %both)
  ret <4 x float> %total
}}
define hidden <4 x float> @{odd}(<4 x float> %x, <4 x float> %y) {{
  %near = fadd <4 x float> %x, %y
  %y.in = fsub <4 x float> %near, %x
  %x.in = fsub <4 x float> %near, %y.in
  %x.left = fsub <4 x float> %x, %x.in
  %y.left = fsub <4 x float> %y, %y.in
  %left = fadd <4 x float> %x.left, %y.left
  %inexact = fcmp one <4 x float> %left, zeroinitializer
  %bits = bitcast <4 x float> %near to {ints}
  %last = and {ints} %bits, splat (i32 1)
  %even = icmp eq {ints} %last, zeroinitializer
  %left.bits = bitcast <4 x float> %left to {ints}
  %signs = xor {ints} %bits, %left.bits
  %inwards = icmp slt {ints} %signs, zeroinitializer
  %step = select <4 x i1> %inwards, {ints} splat (i32 -1), {ints} splat (i32 1)
  %neighbour = add {ints} %bits, %step
  %wanted = and <4 x i1> %inexact, %even
  %chosen = select <4 x i1> %wanted, {ints} %neighbour, {ints} %bits
  %result = call <4 x float> @emulate.normal.4({ints} %chosen)
  ret <4 x float> %result
}}
"""
    return _Call(name, "<4 x float>", match["arguments"], definition)


def _byte_quads(match: re.Match[str]) -> _Call:
    """``vpdpbusd``: four unsigned bytes times four signed ones, added to 32 bits that wrap."""
    return _neighbours("vpdpbusd", int(match["bits"]) // 32, 4, ("zext", "sext"), match["arguments"])


def _signed_quads(match: re.Match[str]) -> _Call:
    """``sdot``: four signed bytes times four, added to 32 bits that wrap."""
    return _neighbours("sdot", 4, 4, ("sext", "sext"), match["arguments"])


def _i16_pairs(match: re.Match[str]) -> _Call:
    """``pmaddwd``: the sum of two products of i16, which wraps where all four are -32768."""
    return _neighbours("pmaddwd", int(match["lanes"]), 2, ("sext", "sext"), match["arguments"], has_sum=False)


def _neighbours(stem: str, lanes: int, count: int, kinds: tuple[str, str], arguments: str, has_sum: bool = True) -> _Call:
    """The sum of products of so many neighbours in two vectors, which are widened by ``zext`` or ``sext``."""
    name, result, narrow = f"emulate.{stem}.{lanes}", f"<{lanes} x i32>", f"i{32 // count}"
    vector = f"<{count * lanes} x {narrow}>"
    lines = [f"%sum.0 = add {result} {'%sum' if has_sum else 'zeroinitializer'}, zeroinitializer"]
    for i in range(count):
        places = ", ".join(f"i32 {count * lane + i}" for lane in range(lanes))
        for operand, kind in zip("ab", kinds, strict=True):
            shuffled = f"shufflevector {vector} %{operand}, {vector} poison, <{lanes} x i32> <{places}>"
            lines.append(f"%{operand}.{i} = {shuffled}")
            lines.append(f"%{operand}.wide.{i} = {kind} <{lanes} x {narrow}> %{operand}.{i} to {result}")
        lines.append(f"%product.{i} = mul {result} %a.wide.{i}, %b.wide.{i}")
        lines.append(f"%sum.{i + 1} = add {result} %sum.{i}, %product.{i}")
    body = "\n".join(f"  {line}" for line in [*lines, f"ret {result} %sum.{count}"])
    operands = ", ".join([*([f"{result} %sum"] if has_sum else []), f"{vector} %a", f"{vector} %b"])
    return _Call(name, result, arguments, f"define hidden {result} @{name}({operands}) {{\n{body}\n}}\n")


_VALUE = r"(?P<x>[%\w.]+|splat \([^)]*\)|<[^>]*>)"
_PMADDWD = r"(?:sse2\.pmadd\.wd|avx2\.pmadd\.wd|avx512\.pmaddw\.d\.512)"
# Constants are splats in parentheses of their own.
_ARGUMENTS = r"\((?P<arguments>(?:[^()]|\([^()]*\))*)\)"
_INSTRUCTIONS: tuple[tuple[str, Callable[[re.Match[str]], _Call]], ...] = (
    (rf"fptrunc (?:<(?P<count>\d+) x )?float>? {_VALUE} to (?:<\d+ x )?bfloat>?", _rounded),
    (rf"(?P<signed>[su])itofp (?:<(?P<count>\d+) x )?(?P<kind>i\d+)>? {_VALUE} to (?:<\d+ x )?bfloat>?", _from_integer),
    (rf"fpext (?:<(?P<count>\d+) x )?bfloat>? {_VALUE} to (?:<\d+ x )?float>?", _widened),
    (rf"call <\d+ x float> @llvm\.x86\.avx512bf16\.dpbf16ps\.(?P<bits>\d+){_ARGUMENTS}", _bf16_pairs),
    (rf"call <4 x float> @llvm\.aarch64\.neon\.bfdot\.v4f32\.v8bf16{_ARGUMENTS}", _neon_pairs),
    (rf"call <\d+ x float> @llvm\.x86\.avx512\.mask\.scalef\.ps\.(?P<bits>\d+){_ARGUMENTS}", _scaled),
    (rf"call <\d+ x i32> @llvm\.x86\.avx512\.vpdpbusd\.(?P<bits>\d+){_ARGUMENTS}", _byte_quads),
    (rf"call <4 x i32> @llvm\.aarch64\.neon\.sdot\.v4i32\.v16i8{_ARGUMENTS}", _signed_quads),
    (rf"call <(?P<lanes>\d+) x i32> @llvm\.x86\.{_PMADDWD}{_ARGUMENTS}", _i16_pairs),
)
