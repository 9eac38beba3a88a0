"""Arithmetic, comparisons, moves and conversions as NumPy expressions."""

from __future__ import annotations

from collections.abc import Callable

from .emitter import VIEW, Emitter
from .findings import PtxError
from .syntax import WIDTH, Instruction, Operand

__all__ = ["ARITHMETIC"]

_FLOATS = frozenset({"f16", "bf16", "f32", "f64", "f16x2", "bf16x2"})
_PAIRS = {"f16x2": "f2", "u16x2": "u2", "s16x2": "i2"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


def read_number(e: Emitter, operand: Operand, kind: str) -> str:
    """An operand to calculate with: bf16 as f32, pairs as two columns."""
    if kind == "bf16":
        return e.new(f"widen({e.read(operand, 'b16')})")
    if kind == "bf16x2":
        return e.new(f"widen(halves({e.read(operand, 'b32')}, u2))")
    if kind in _PAIRS:
        return e.new(f"halves({e.read(operand, 'b32')}, {_PAIRS[kind]})")
    return e.read(operand, kind)


def write_number(e: Emitter, operand: Operand, kind: str, expression: str) -> None:
    """A result of what :func:`read_number` gives."""
    if kind == "bf16":
        return e.write(operand, "b16", f"narrow({expression})")
    if kind == "bf16x2":
        return e.write(operand, "b32", f"pair(narrow({expression}))")
    return e.write(operand, "b32" if kind in _PAIRS else kind, f"pair({expression})" if kind in _PAIRS else expression)


def _rounding(ins: Instruction) -> str:
    return next((m for m in ins.modifiers if m in ("rz", "rm", "rp")), "rn")


def _kind(ins: Instruction) -> str:
    return ins.types.get("T") or ins.modifiers[-1]


def _finished(ins: Instruction, expression: str, kind: str) -> str:
    """A result with what its modifiers ask for."""
    zero = f"np.float{8 * WIDTH[kind] if kind in ('f16', 'f64') else 16 if kind == 'f16x2' else 32}(0)"
    if "relu" in ins.modifiers:
        expression = f"maximum({expression}, {zero}, False)"
    if "ftz" in ins.modifiers and kind == "f32":
        expression = f"ftz({expression})"
    return f"saturated({expression})" if "sat" in ins.modifiers else expression


def _operands(e: Emitter, ins: Instruction, kind: str) -> list[str]:
    values = [read_number(e, operand, kind) for operand in ins.args[1:]]
    return [e.new(f"ftz({v})") for v in values] if "ftz" in ins.modifiers and kind == "f32" else values


def _binary(operator: str, directed: str = "", whole: str = "") -> Callable[[Emitter, Instruction], None]:
    """``operator`` of two numbers; ``directed`` is the function for other roundings, ``whole`` what saturates integers."""

    def emit(e: Emitter, ins: Instruction) -> None:
        kind = _kind(ins)
        a, b = _operands(e, ins, kind)
        if kind not in _FLOATS:
            expression = whole.format(a=a, b=b) if "sat" in ins.modifiers else operator.format(a=a, b=b)
            return write_number(e, ins.args[0], kind, expression)
        mode = _rounding(ins)
        expression = operator.format(a=a, b=b) if mode == "rn" else directed.format(a=a, b=b, kind=kind, mode=mode)
        return write_number(e, ins.args[0], kind, _finished(ins, expression, kind))

    return emit


def _unary(expression: str, directed: str = "") -> Callable[[Emitter, Instruction], None]:
    def emit(e: Emitter, ins: Instruction) -> None:
        kind = _kind(ins)
        (a,) = _operands(e, ins, kind)
        mode = _rounding(ins)
        text = directed.format(a=a, kind=kind, mode=mode) if directed and mode != "rn" else expression.format(a=a)
        write_number(e, ins.args[0], kind, _finished(ins, text, kind) if kind in _FLOATS else text)

    return emit


def _bits(expression: str) -> Callable[[Emitter, Instruction], None]:
    """A function of values of one type whose result is b32: counts of bits."""

    def emit(e: Emitter, ins: Instruction) -> None:
        shift = "shiftamt" in ins.modifiers
        e.write(ins.args[0], "b32", expression.format(a=e.read(ins.args[1], _kind(ins)), shift=shift))

    return emit


def _mul(e: Emitter, ins: Instruction) -> None:
    kind = _kind(ins)
    if kind in _FLOATS or "lo" in ins.modifiers:
        return _binary("{a} * {b}", "multiply({a}, {b}, {kind!r}, {mode!r})")(e, ins)
    a, b = (e.read(x, kind) for x in ins.args[1:3])
    return _widened(e, ins, kind, a, b, "")


def _widened(e: Emitter, ins: Instruction, kind: str, a: str, b: str, more: str) -> None:
    """mul and mad with .wide or .hi."""
    if "wide" in ins.modifiers:
        wide = kind[0] + str(2 * int(kind[1:]))
        c = f" + {e.read(ins.args[3], wide)}" if more else ""
        return e.write(ins.args[0], wide, f"{a}.astype({VIEW[wide]}) * {b}.astype({VIEW[wide]}){c}")
    c = f" + {e.read(ins.args[3], kind)}" if more else ""
    return e.write(ins.args[0], kind, f"mulhi({a}, {b}, {8 * WIDTH[kind]}){c}")


def _mul24(e: Emitter, ins: Instruction) -> None:
    kind = _kind(ins)
    a, b = (f"(({e.read(x, kind)} << {8}) >> {8})" for x in ins.args[1:3])
    e.write(ins.args[0], kind, f"{a} * {b}")


def _mad(e: Emitter, ins: Instruction) -> None:
    kind = _kind(ins)
    if kind in _FLOATS:
        return _fma(e, ins)
    a, b = (e.read(x, kind) for x in ins.args[1:3])
    if "lo" in ins.modifiers:
        return e.write(ins.args[0], kind, f"{a} * {b} + {e.read(ins.args[3], kind)}")
    return _widened(e, ins, kind, a, b, "c")


def _fma(e: Emitter, ins: Instruction) -> None:
    kind = _kind(ins)
    a, b, c = _operands(e, ins, kind)
    expression = f"fma({a}, {b}, {c}, {kind!r}, {_rounding(ins)!r})"
    write_number(e, ins.args[0], kind, _finished(ins, expression, kind))


def _div(e: Emitter, ins: Instruction) -> None:
    kind = _kind(ins)
    if kind not in _FLOATS:
        a, b = (e.read(x, kind) for x in ins.args[1:])
        return e.write(ins.args[0], kind, f"quotient({a}, {b})")
    operator = "divide_fast({a}, {b})" if "approx" in ins.modifiers else "{a} / {b}"
    return _binary(operator, "divide({a}, {b}, {kind!r}, {mode!r})")(e, ins)


def _extreme(function: str, whole: str) -> Callable[[Emitter, Instruction], None]:
    def emit(e: Emitter, ins: Instruction) -> None:
        kind = _kind(ins)
        a, b = _operands(e, ins, kind)
        if kind not in _FLOATS:
            return write_number(e, ins.args[0], kind, f"{whole}({a}, {b})")
        if "xorsign" in ins.modifiers:
            expression = f"xorsign({function}(np.abs({a}), np.abs({b}), {'NaN' in ins.modifiers}), {a}, {b})"
        else:
            expression = f"{function}({a}, {b}, {'NaN' in ins.modifiers})"
        return write_number(e, ins.args[0], kind, _finished(ins, expression, kind))

    return emit


def _shift(function: str) -> Callable[[Emitter, Instruction], None]:
    def emit(e: Emitter, ins: Instruction) -> None:
        kind = _kind(ins)
        a, n = e.read(ins.args[1], kind), e.read(ins.args[2], "u32")
        width = 8 * WIDTH[kind]
        literal = ins.args[2] if isinstance(ins.args[2], str) and ins.args[2].isdigit() else None
        if literal and int(literal) < width:
            operator = "<<" if function == "shift_left" else ">>"
            return e.write(ins.args[0], kind, f"{a} {operator} {int(literal)}")
        return e.write(ins.args[0], kind, f"{function}({a}, {n}, {width})")

    return emit


def _typed(function: str, *kinds: str) -> Callable[[Emitter, Instruction], None]:
    """A function of operands of given types (T is the instruction's), with its result of the first one's."""

    def emit(e: Emitter, ins: Instruction) -> None:
        own = [_kind(ins) if k == "T" else k for k in kinds]
        values = [e.read(operand, kind) for operand, kind in zip(ins.args[1:], own, strict=True)]
        m = ins.modifiers
        flags = {"width": 8 * WIDTH[own[0]], "clamp": "clamp" in m, "left": "l" in m, "mode": m[-1] if m[-1] != "b32" else ""}
        e.write(ins.args[0], own[0], function.format(*values, **flags))

    return emit


def _lop3(e: Emitter, ins: Instruction) -> None:
    a, b, c = (e.read(x, "b32") for x in ins.args[1:4])
    e.write(ins.args[0], "b32", f"lop3({a}, {b}, {c}, {e.integer(ins.args[4])})")


def _dot(e: Emitter, ins: Instruction) -> None:
    views = [VIEW[ins.types[k][0] + "8"] for k in "TS"]
    first = views[0] if ins.name == "dp4a" else VIEW[ins.types["T"][0] + "16"]
    a, b, c = (e.read(x, "b32") for x in ins.args[1:4])
    width, half = (4, 0) if ins.name == "dp4a" else (2, int("hi" in ins.modifiers))
    e.write(ins.args[0], "b32", f"dot({a}, {b}, {c}, ({first}, {views[1]}), {width}, {half})")


def compared(e: Emitter, ins: Instruction, name: str, a: str, b: str, kind: str) -> str:
    """A comparison; with ``u`` at its end it also holds when one is no number."""
    if kind not in _FLOATS:
        return f"({a} {_COMPARE[name]} {b})"
    if name in ("num", "nan"):
        return f"({'~' if name == 'num' else ''}(np.isnan({a}) | np.isnan({b})))"
    if name.endswith("u"):
        return f"(({a} {_COMPARE[name[:-1]]} {b}) | np.isnan({a}) | np.isnan({b}))"
    if name == "ne":
        return f"(({a} != {b}) & ~np.isnan({a}) & ~np.isnan({b}))"
    return f"({a} {_COMPARE[name]} {b})"


def _setp(e: Emitter, ins: Instruction) -> None:
    kind = _kind(ins)
    result, _, other = str(ins.args[0]).partition("|")
    a, b = (read_number(e, x, kind) for x in ins.args[1:3])
    if "ftz" in ins.modifiers and kind == "f32":
        a, b = e.new(f"ftz({a})"), e.new(f"ftz({b})")
    truth = e.new(compared(e, ins, ins.modifiers[0], a, b, kind))
    if kind in ("f16x2", "bf16x2"):
        e.write(result, "pred", f"{truth}[:, 0]")
        return e.write(other or "_", "pred", f"{truth}[:, 1]")
    combine = next((o for o in ins.modifiers[1:] if o in ("and", "or", "xor")), "")
    third = e.read(ins.args[3], "pred") if combine else ""
    operator = {"and": "&", "or": "|", "xor": "^", "": ""}[combine]
    e.write(result, "pred", f"{truth} {operator} {third}" if combine else truth)
    if other:
        e.write(other, "pred", f"~{truth} {operator} {third}" if combine else f"~{truth}")
    return None


def _set(e: Emitter, ins: Instruction) -> None:
    kind, result = _kind(ins), ins.types["S"]
    a, b = (read_number(e, x, kind) for x in ins.args[1:3])
    truth = compared(e, ins, ins.modifiers[0], a, b, kind)
    yes = "np.float32(1)" if result == "f32" else f"{VIEW[result]}(-1)" if result == "s32" else "~u4(0)"
    e.write(ins.args[0], result, f"np.where({truth}, {yes}, {VIEW[result]}(0))")


def _selp(e: Emitter, ins: Instruction) -> None:
    kind = f"b{8 * WIDTH[_kind(ins)]}"
    a, b, p = e.read(ins.args[1], kind), e.read(ins.args[2], kind), e.read(ins.args[3], "pred")
    e.write(ins.args[0], kind, f"np.where({p}, {a}, {b})")


def _slct(e: Emitter, ins: Instruction) -> None:
    kind = f"b{8 * WIDTH[_kind(ins)]}"
    a, b, c = e.read(ins.args[1], kind), e.read(ins.args[2], kind), e.read(ins.args[3], ins.types["S"])
    e.write(ins.args[0], kind, f"np.where({c} >= 0, {a}, {b})")


def _testp(e: Emitter, ins: Instruction) -> None:
    a = e.read(ins.args[1], _kind(ins))
    tiny = f"np.finfo({VIEW[_kind(ins)]}).tiny"
    tests = {
        "finite": f"np.isfinite({a})",
        "infinite": f"np.isinf({a})",
        "number": f"~np.isnan({a})",
        "notanumber": f"np.isnan({a})",
        "normal": f"np.isfinite({a}) & (np.abs({a}) >= {tiny})",
        "subnormal": f"({a} != 0) & (np.abs({a}) < {tiny})",
    }
    e.write(ins.args[0], "pred", tests[ins.modifiers[0]])


def _mov(e: Emitter, ins: Instruction) -> None:
    kind, (result, source) = _kind(ins), ins.args
    width = WIDTH[kind]
    if isinstance(result, tuple):
        return _unpack(e, result, source, width)
    if isinstance(source, tuple):
        return _pack(e, str(result), source, width)
    assert isinstance(source, str)
    if source in e.registers and str(result) in e.registers:
        if WIDTH[e.registers[source]] != width or WIDTH[e.registers[str(result)]] != width:
            raise PtxError(f"expected registers of {8 * width} bits")
        return e.alias(str(result), source)
    plain = "pred" if kind == "pred" else f"b{8 * width}"
    return e.write(result, plain, e.read(source, plain))


def _unpack(e: Emitter, parts: tuple[Operand, ...], source: Operand, width: int) -> None:
    part = width // len(parts)
    value = e.new(f"rows({e.read(source, f'b{8 * width}')}).view(u{part}).reshape(-1, {len(parts)})")
    for index, name in enumerate(parts):
        e.write(name, f"b{8 * part}", f"{value}[:, {index}].copy()")


def _pack(e: Emitter, result: str, parts: tuple[Operand, ...], width: int) -> None:
    part = width // len(parts)
    values = [e.read(p, f"b{8 * part}") for p in parts]
    shifted = [
        f"{v}.astype(u{width}) << u{width}({8 * part * i})" if i else f"{v}.astype(u{width})" for i, v in enumerate(values)
    ]
    e.write(result, f"b{8 * width}", " | ".join(f"({s})" for s in shifted))


def _cvt(e: Emitter, ins: Instruction) -> None:
    if ins.modifiers[0] == "pack":
        kind = VIEW[ins.types["T"]]
        c = e.read(ins.args[3], "b32") if len(ins.args) > 3 else "None"
        return e.write(ins.args[0], "b32", f"packed({e.read(ins.args[1], 's32')}, {e.read(ins.args[2], 's32')}, {c}, {kind})")
    to, source = ins.types["T"], ins.types["S"]
    if to in ("f16x2", "bf16x2", "e4m3x2", "e5m2x2"):
        return _cvt_pair(e, ins, to, source)
    x = read_number(e, ins.args[1], source)
    if source in _FLOATS:
        if "ftz" in ins.modifiers and source == "f32":
            x = e.new(f"ftz({x})")
        return _cvt_float(e, ins, to, source, x)
    if to in _FLOATS:
        text = f"from_int({x}, {to!r}, {_rounding(ins)!r})"
        return e.write(ins.args[0], "b16" if to == "bf16" else to, f"saturated({text})" if "sat" in ins.modifiers else text)
    return e.write(ins.args[0], to, f"clamped({x}, {VIEW[to]})" if "sat" in ins.modifiers else f"{x}.astype({VIEW[to]})")


def _cvt_pair(e: Emitter, ins: Instruction, to: str, source: str) -> None:
    relu, finite = "relu" in ins.modifiers, "satfinite" in ins.modifiers
    if source in ("e4m3x2", "e5m2x2"):
        return e.write(ins.args[0], "b32", f"from_f8({e.read(ins.args[1], 'b16')}, {source!r}, {relu})")
    if source == "f16x2":
        columns = read_number(e, ins.args[1], "f16x2")
        return e.write(ins.args[0], "b16", f"to_f8({columns}[:, 1], {columns}[:, 0], {to!r}, {relu})")
    high, low = (e.read(x, "f32") for x in ins.args[1:3])
    if to in ("e4m3x2", "e5m2x2"):
        return e.write(ins.args[0], "b16", f"to_f8({high}, {low}, {to!r}, {relu})")
    return e.write(ins.args[0], "b32", f"to_pair({high}, {low}, {to!r}, {_rounding(ins)!r}, {relu}, {finite})")


def _cvt_float(e: Emitter, ins: Instruction, to: str, source: str, x: str) -> None:
    whole = next((m for m in ins.modifiers if m in ("rni", "rzi", "rmi", "rpi")), "")
    if to not in _FLOATS and to != "tf32":
        return e.write(ins.args[0], to, f"to_int({x}, {whole!r}, {VIEW[to]})")
    if "relu" in ins.modifiers or "satfinite" in ins.modifiers:
        x = e.new(f"limited({x}, {to!r}, {'relu' in ins.modifiers}, {'satfinite' in ins.modifiers})")
    if to == "tf32":
        mode = "rna" if "rna" in ins.modifiers else _rounding(ins)
        return e.write(ins.args[0], "b32", f"to_tf32({x}, {mode!r})")
    if whole:
        x = f"whole({x}, {whole!r})"
    elif to == "bf16":
        return e.write(ins.args[0], "b16", f"narrow({x}, {_rounding(ins)!r})")
    elif WIDTH[to] < WIDTH[source] or source == "bf16":
        x = f"rounded({x}.astype(f8), {to!r}, {_rounding(ins)!r})"
    else:
        x = f"{x}.astype({VIEW[to]})" if to != source else x
    x = f"saturated({x})" if "sat" in ins.modifiers else x
    if to == "bf16":
        return e.write(ins.args[0], "b16", f"narrow({x})")
    return e.write(ins.args[0], to, f"ftz({x})" if "ftz" in ins.modifiers and to == "f32" else f"+{x}")


def _nothing(e: Emitter, ins: Instruction) -> None:
    """An instruction without an effect here."""


def _implicit(e: Emitter, ins: Instruction) -> None:
    """LLVM says that a register's value does not matter."""
    name = str(ins.args[0])
    kind = e.registers[name]
    width = WIDTH[kind]
    e.write(
        name,
        "pred" if kind == "pred" else f"b{8 * width}",
        "b1(False)" if kind == "pred" else f"u{width}({0x7FF5A5A57FF5A5A5 & ((1 << 8 * width) - 1)})",
    )


#: What emits an instruction, by its name.
ARITHMETIC: dict[str, Callable[[Emitter, Instruction], None]] = {
    "add": _binary("{a} + {b}", "add({a}, {b}, {kind!r}, {mode!r})", "add_sat({a}, {b}, 1)"),
    "sub": _binary("{a} - {b}", "add({a}, -{b}, {kind!r}, {mode!r})", "add_sat({a}, {b}, -1)"),
    "mul": _mul,
    "mul24": _mul24,
    "mad": _mad,
    "fma": _fma,
    "div": _div,
    "rem": _typed("remainder({0}, {1})", "T", "T"),
    "sad": _typed("sad({0}, {1}, {2})", "T", "T", "T"),
    "abs": _unary("np.abs({a})"),
    "neg": _unary("-{a}"),
    "min": _extreme("minimum", "np.minimum"),
    "max": _extreme("maximum", "np.maximum"),
    "rcp": _unary("np.reciprocal({a})", "divide(f4(1), {a}, {kind!r}, {mode!r})"),
    "sqrt": _unary("np.sqrt({a})", "root({a}, {kind!r}, {mode!r})"),
    "rsqrt": _unary("(1 / np.sqrt({a}))"),
    "sin": _unary("np.sin({a})"),
    "cos": _unary("np.cos({a})"),
    "lg2": _unary("np.log2({a})"),
    "ex2": _unary("np.exp2({a})"),
    "tanh": _unary("np.tanh({a})"),
    "copysign": _binary("np.copysign({b}, {a})"),
    "testp": _testp,
    "popc": _bits("popc({a})"),
    "clz": _bits("clz({a})"),
    "bfind": _bits("bfind({a}, {shift})"),
    "brev": _typed("brev({0})", "T"),
    "bfe": _typed("bfe({0}, {1}, {2}, {width})", "T", "u32", "u32"),
    "bfi": _typed("bfi({0}, {1}, {2}, {3}, {width})", "T", "T", "u32", "u32"),
    "bmsk": _typed("bmsk({0}, {1}, {clamp})", "b32", "b32"),
    "szext": _typed("szext({0}, {1}, {clamp})", "T", "u32"),
    "dp4a": _dot,
    "dp2a": _dot,
    "and": _typed("{0} & {1}", "T", "T"),
    "or": _typed("{0} | {1}", "T", "T"),
    "xor": _typed("{0} ^ {1}", "T", "T"),
    "not": _typed("~{0}", "T"),
    "cnot": _typed("({0} == 0).astype({0}.dtype)", "T"),
    "lop3": _lop3,
    "shl": _shift("shift_left"),
    "shr": _shift("shift_right"),
    "shf": _typed("funnel({0}, {1}, {2}, {left}, {clamp})", "b32", "b32", "b32"),
    "prmt": _typed("permuted({0}, {1}, {2}, {mode!r})", "b32", "b32", "b32"),
    "set": _set,
    "setp": _setp,
    "selp": _selp,
    "slct": _slct,
    "mov": _mov,
    "cvt": _cvt,
    "implicit_def": _implicit,
    "prefetch": _nothing,
    "prefetchu": _nothing,
    "applypriority": _nothing,
    "discard": _nothing,
    "nanosleep": _nothing,
    "pmevent": _nothing,
    "griddepcontrol": _nothing,
}
