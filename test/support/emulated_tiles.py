"""Tile registers (Intel AMX) in generic LLVM IR: a function that uses them has theirs on its stack.

Each use begins with ``ldtilecfg`` in the same function, so that no state goes from one to another.
"""

from __future__ import annotations

import re

__all__ = ["with_emulated_tiles"]

# 64 bytes that say how many rows and bytes registers have, then eight registers of 16 rows of 64 bytes.
_STATE, _REGISTER, _LINE, _REGISTERS = 64, 1024, 64, 8
_SIZE = _STATE + _REGISTERS * _REGISTER

_CALL = re.compile(r"call void @llvm\.x86\.(ldtilecfg|tilerelease|tilezero|tileloadd64|tilestored64|tdp\w+)\(")
_DEFINITION = re.compile(r"^(define [^\n]*\{\n)((?:[^}\n][^\n]*\n|\n)*)\}\n", re.M)
# Which extension the bytes of each factor get.
_BYTES = {"s": "sext", "u": "zext"}


def with_emulated_tiles(text: str) -> str:
    """LLVM IR text without instructions of tile registers."""
    names = set(_CALL.findall(text))
    if not names:
        return text
    text = _DEFINITION.sub(lambda m: _with_state(m[1], m[2]), text)
    helpers = "\n".join([_HELPERS, *(_definition(name) for name in sorted(names))])
    return f"{text}\n{helpers.replace(') {', ') noinline {')}"


def _with_state(head: str, body: str) -> str:
    if not _CALL.search(body):
        return f"{head}{body}}}\n"
    calls = _CALL.sub(lambda m: f"call void @emulate.{m[1]}(ptr %emulated.tiles, ", body)
    calls = calls.replace("%emulated.tiles, )", "%emulated.tiles)")
    label = re.match(r"[\w.$-]+:[^\n]*\n", calls)
    begin = label[0] if label else ""
    return f"{head}{begin}  %emulated.tiles = alloca [{_SIZE} x i8], align 64\n{calls[len(begin) :]}}}\n"


# Where a register is; how many rows it has, and bytes of a row.
_HELPERS = f"""
define hidden ptr @emulate.register(ptr %s, i8 %n) {{
  %wide = zext i8 %n to i64
  %bytes = mul i64 %wide, {_REGISTER}
  %at = add i64 %bytes, {_STATE}
  %p = getelementptr i8, ptr %s, i64 %at
  ret ptr %p
}}
define hidden i64 @emulate.rows(ptr %s, i8 %n) {{
  %wide = zext i8 %n to i64
  %at = add i64 %wide, 48
  %p = getelementptr i8, ptr %s, i64 %at
  %rows = load i8, ptr %p
  %result = zext i8 %rows to i64
  ret i64 %result
}}
define hidden i64 @emulate.bytes(ptr %s, i8 %n) {{
  %wide = zext i8 %n to i64
  %two = mul i64 %wide, 2
  %at = add i64 %two, 16
  %p = getelementptr i8, ptr %s, i64 %at
  %bytes = load i16, ptr %p
  %result = zext i16 %bytes to i64
  ret i64 %result
}}
"""

_SIMPLE = {
    "ldtilecfg": f"""define hidden void @emulate.ldtilecfg(ptr %s, ptr %p) {{
  call void @llvm.memset.p0.i64(ptr %s, i8 0, i64 {_SIZE}, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %s, ptr %p, i64 {_STATE}, i1 false)
  ret void
}}
""",
    # Shapes go with it: what follows without a new configuration reads and writes nothing, and tests see that.
    "tilerelease": f"""define hidden void @emulate.tilerelease(ptr %s) {{
  call void @llvm.memset.p0.i64(ptr %s, i8 0, i64 {_SIZE}, i1 false)
  ret void
}}
""",
    "tilezero": f"""define hidden void @emulate.tilezero(ptr %s, i8 %n) {{
  %t = call ptr @emulate.register(ptr %s, i8 %n)
  call void @llvm.memset.p0.i64(ptr %t, i8 0, i64 {_REGISTER}, i1 false)
  ret void
}}
""",
}


def _definition(name: str) -> str:
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name in ("tileloadd64", "tilestored64"):
        return _move(name)
    return _pairs(name) if name == "tdpbf16ps" else _quads(name)


def _move(name: str) -> str:
    """Rows from or to memory; what is beyond them in a register is zero."""
    is_load = name == "tileloadd64"
    clear = f"  call void @llvm.memset.p0.i64(ptr %t, i8 0, i64 {_REGISTER}, i1 false)\n" if is_load else ""
    to, from_ = ("%own", "%other") if is_load else ("%other", "%own")
    return f"""define hidden void @emulate.{name}(ptr %s, i8 %n, ptr %p, i64 %stride) {{
  %t = call ptr @emulate.register(ptr %s, i8 %n)
  %rows = call i64 @emulate.rows(ptr %s, i8 %n)
  %bytes = call i64 @emulate.bytes(ptr %s, i8 %n)
{clear}  br label %head
head:
  %i = phi i64 [0, %0], [%next, %row]
  %more = icmp ult i64 %i, %rows
  br i1 %more, label %row, label %end
row:
  %o = mul i64 %i, {_LINE}
  %own = getelementptr i8, ptr %t, i64 %o
  %m = mul i64 %i, %stride
  %other = getelementptr i8, ptr %p, i64 %m
  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {from_}, i64 %bytes, i1 false)
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""


def _loops(name: str, sums: str, begin: str, step: str, end: str) -> str:
    """For each row of the sums, a loop over words of the left factor's: ``%word`` of it, ``%line`` of the right one.

    Args:
        name: of the instruction.
        sums: the type of a row's sums.
        begin: ``%acc.0`` of it, from ``%c``, where a row's sums are.
        step: ``%acc.1`` from ``%acc``, ``%word`` and ``%line``.
        end: writes ``%acc`` to ``%c``.
    """
    return f"""define hidden void @emulate.{name}(ptr %s, i8 %x, i8 %y, i8 %z) {{
  %tc = call ptr @emulate.register(ptr %s, i8 %x)
  %ta = call ptr @emulate.register(ptr %s, i8 %y)
  %tb = call ptr @emulate.register(ptr %s, i8 %z)
  %rows = call i64 @emulate.rows(ptr %s, i8 %x)
  %bytes = call i64 @emulate.bytes(ptr %s, i8 %y)
  %words = lshr i64 %bytes, 2
  br label %head
head:
  %i = phi i64 [0, %0], [%i.next, %done]
  %more = icmp ult i64 %i, %rows
  br i1 %more, label %row, label %end
row:
  %o = mul i64 %i, {_LINE}
  %c = getelementptr i8, ptr %tc, i64 %o
  %a = getelementptr i8, ptr %ta, i64 %o
{begin}
  br label %inner
inner:
  %k = phi i64 [0, %row], [%k.next, %body]
  %acc = phi {sums} [%acc.0, %row], [%acc.1, %body]
  %left = icmp ult i64 %k, %words
  br i1 %left, label %body, label %done
body:
  %pa = getelementptr i32, ptr %a, i64 %k
  %word = load i32, ptr %pa
  %ob = mul i64 %k, {_LINE}
  %line = getelementptr i8, ptr %tb, i64 %ob
{step}
  %k.next = add i64 %k, 1
  br label %inner
done:
{end}
  %i.next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""


def _splat(value: str) -> str:
    return f"""  %one = insertelement <16 x i32> poison, i32 {value}, i32 0
  %every = shufflevector <16 x i32> %one, <16 x i32> poison, <16 x i32> zeroinitializer"""


def _quads(name: str) -> str:
    """``tdpb**d``: four bytes of a row times four of a column, added to 32 bits that wrap."""
    left, right = (_BYTES[letter] for letter in name[4:6])
    lines = [_splat("%word"), "  %a.bytes = bitcast <16 x i32> %every to <64 x i8>", "  %b.bytes = load <64 x i8>, ptr %line"]
    total = "%acc"
    for i in range(4):
        places = ", ".join(f"i32 {4 * lane + i}" for lane in range(16))
        for letter, extension in (("a", left), ("b", right)):
            lines.append(f"  %{letter}.{i} = shufflevector <64 x i8> %{letter}.bytes, <64 x i8> poison, <16 x i32> <{places}>")
            lines.append(f"  %{letter}.w.{i} = {extension} <16 x i8> %{letter}.{i} to <16 x i32>")
        lines.append(f"  %p.{i} = mul <16 x i32> %a.w.{i}, %b.w.{i}")
        lines.append(f"  {'%acc.1' if i == 3 else f'%t.{i}'} = add <16 x i32> {total}, %p.{i}")
        total = f"%t.{i}"
    begin, end = "  %acc.0 = load <16 x i32>, ptr %c", "  store <16 x i32> %acc, ptr %c"
    return _loops(name, "<16 x i32>", begin, "\n".join(lines), end)


def _pairs(name: str) -> str:
    """``tdpbf16ps``: even and odd elements are summed apart, from zero, by multiply-adds that round once; then both are added,
    and that to the sum. What is below the normal numbers is zero everywhere."""
    kind = "<16 x float>"
    lines = [_splat("%word"), "  %b.word = load <16 x i32>, ptr %line"]
    for letter, source in (("a", "%every"), ("b", "%b.word")):
        lines.append(f"  %{letter}.even.bits = shl <16 x i32> {source}, splat (i32 16)")
        lines.append(f"  %{letter}.odd.bits = and <16 x i32> {source}, splat (i32 -65536)")
        for half in ("even", "odd"):
            lines.append(f"  %{letter}.{half} = call {kind} @emulate.tile.normal(<16 x i32> %{letter}.{half}.bits)")
    halves = [", ".join(f"i32 {i + first}" for i in range(16)) for first in (0, 16)]
    for part, half in zip(("low", "high"), halves, strict=True):
        lines.append(f"  %{part} = shufflevector <32 x float> %acc, <32 x float> poison, <16 x i32> <{half}>")
    for half, part in (("even", "low"), ("odd", "high")):
        lines.append(f"  %{half} = call {kind} @llvm.fma.v16f32({kind} %a.{half}, {kind} %b.{half}, {kind} %{part})")
        lines.append(f"  %{half}.bits = bitcast {kind} %{half} to <16 x i32>")
        lines.append(f"  %{half}.n = call {kind} @emulate.tile.normal(<16 x i32> %{half}.bits)")
    joined = ", ".join(f"i32 {i}" for i in range(32))
    lines.append(f"  %acc.1 = shufflevector {kind} %even.n, {kind} %odd.n, <32 x i32> <{joined}>")
    end = f"""  %x.even = shufflevector <32 x float> %acc, <32 x float> poison, <16 x i32> <{halves[0]}>
  %x.odd = shufflevector <32 x float> %acc, <32 x float> poison, <16 x i32> <{halves[1]}>
  %both = fadd {kind} %x.even, %x.odd
  %both.bits = bitcast {kind} %both to <16 x i32>
  %both.n = call {kind} @emulate.tile.normal(<16 x i32> %both.bits)
  %c.bits = load <16 x i32>, ptr %c
  %c.n = call {kind} @emulate.tile.normal(<16 x i32> %c.bits)
  %total = fadd {kind} %c.n, %both.n
  %total.bits = bitcast {kind} %total to <16 x i32>
  %total.n = call {kind} @emulate.tile.normal(<16 x i32> %total.bits)
  store {kind} %total.n, ptr %c"""
    begin = "  %acc.0 = select i1 true, <32 x float> zeroinitializer, <32 x float> zeroinitializer"
    return _NORMAL + _loops(name, "<32 x float>", begin, "\n".join(lines), end)


_NORMAL = f"""define hidden <16 x float> @emulate.tile.normal(<16 x i32> %bits) {{
  %exponent = and <16 x i32> %bits, splat (i32 {0x7F800000})
  %sign = and <16 x i32> %bits, splat (i32 {-0x80000000})
  %small = icmp eq <16 x i32> %exponent, zeroinitializer
  %kept = select <16 x i1> %small, <16 x i32> %sign, <16 x i32> %bits
  %result = bitcast <16 x i32> %kept to <16 x float>
  ret <16 x float> %result
}}
"""
