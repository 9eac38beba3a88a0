"""Loads, stores, atomics, addresses, fences and copies as calls of the units that do them."""

from __future__ import annotations

from collections.abc import Callable

from .emitter import VIEW, Emitter
from .findings import PtxError
from .syntax import WIDTH, Address, Instruction, Operand

__all__ = ["MEMORY", "space_of"]

_SPACES = ("global", "shared", "local", "param", "const")


def space_of(ins: Instruction, default: str = "generic") -> str:
    """The state space that an instruction names; ``cluster`` is shared memory of any block of the cluster."""
    for modifier in ins.modifiers:
        name = modifier.partition("::")[0]
        if name in _SPACES:
            return "cluster" if modifier == "shared::cluster" else name
    return default


def _place(e: Emitter, ins: Instruction, address: Address) -> str:
    """The space of a load or store; arguments of calls are in local memory."""
    space = space_of(ins)
    symbol = e.symbols.get(address.base)
    return "local" if space == "param" and symbol is not None and symbol.space == "local" else space


def _width(ins: Instruction) -> tuple[str, int, int]:
    """Type, width of an element in bytes, number of elements."""
    kind = ins.types["T"]
    number = next((int(m[1:]) for m in ins.modifiers if m in ("v2", "v4")), 1)
    if number * WIDTH[kind] > 16:
        raise PtxError(f"line {ins.line}: expected at most 16 bytes, got {number * WIDTH[kind]}: {ins.text}")
    return kind, WIDTH[kind], number


def _ld(e: Emitter, ins: Instruction) -> None:
    kind, width, number = _width(ins)
    address = ins.args[1]
    assert isinstance(address, Address)
    results = ins.args[0] if isinstance(ins.args[0], tuple) else (ins.args[0],)
    if len(results) != number:
        raise PtxError(f"line {ins.line}: expected {number} results, got {len(results)}: {ins.text}")
    place, plain = _place(e, ins, address), kind if kind[0] == "s" else f"b{8 * width}"
    if place == "param":
        for index, result in enumerate(results):
            e.write(result, plain, f"core.param({e.address(address)} + {index * width}, {VIEW[plain]}, {e.at})")
        return
    order = ", True" if {"acquire", "relaxed", "volatile"} & set(ins.modifiers) else ""
    loaded = e.new(f"mem.load({place!r}, {e.lanes}, {e.address(address)}, {width}, {number}, {e.at}{order})")
    view = f".view({VIEW[plain]})" if kind[0] == "s" else ""
    for index, result in enumerate(results):
        e.write(result, plain, f"{loaded}{view}" if number == 1 else f"{loaded}{view}[:, {index}]")


def _st(e: Emitter, ins: Instruction) -> None:
    _, width, number = _width(ins)
    address, value = ins.args[:2]
    assert isinstance(address, Address)
    values = value if isinstance(value, tuple) else (value,)
    if len(values) != number:
        raise PtxError(f"line {ins.line}: expected {number} values, got {len(values)}: {ins.text}")
    place = _place(e, ins, address)
    if place in ("param", "const"):
        raise PtxError(f"line {ins.line}: expected memory to write, got {place}: {ins.text}")
    order = ", True" if {"release", "relaxed", "volatile"} & set(ins.modifiers) else ""
    read = "".join(f"{e.read(v, f'b{8 * width}')}, " for v in values)
    e.line(f"mem.store({place!r}, {e.lanes}, {e.address(address)}, {width}, ({read}), {e.at}{order})")


def _atom(e: Emitter, ins: Instruction) -> None:
    kind, operation, space = ins.types["T"], ins.types["O"], space_of(ins)
    has_result = ins.name == "atom"
    address, *operands = ins.args[1:] if has_result else ins.args
    values = "".join(f"{e.read(v, kind)}, " for v in operands)
    call = f"mem.atomic({space!r}, {e.lanes}, {e.address(address)}, {operation!r}, {kind!r}, {VIEW[kind]}, ({values}), {e.at})"
    if has_result:
        return e.write(ins.args[0], kind, call)
    return e.line(call)


def _cvta(e: Emitter, ins: Instruction) -> None:
    place = ins.types["P"].partition("::")[0]
    value = e.read(ins.args[1], "u64" if ins.types["T"] == "u64" else "u32")
    sign = "-" if "to" in ins.modifiers else "+"
    e.write(ins.args[0], ins.types["T"], f"{value} {sign} core.window({place!r}, {VIEW[ins.types['T']]})")


def _isspacep(e: Emitter, ins: Instruction) -> None:
    place = ins.types["P"].partition("::")[0]
    e.write(ins.args[0], "pred", f"core.is_in({e.read(ins.args[1], 'u64')}, {place!r})")


def _mapa(e: Emitter, ins: Instruction) -> None:
    kind = ins.types["T"]
    e.write(ins.args[0], kind, f"core.mapped({e.read(ins.args[1], kind)}, {e.read(ins.args[2], 'u32')}, {VIEW[kind]})")


def _getctarank(e: Emitter, ins: Instruction) -> None:
    e.write(ins.args[0], "b32", f"core.rank_of_address({e.read(ins.args[1], ins.types['T'])}, {e.lanes})")


def _fence(e: Emitter, ins: Instruction) -> None:
    is_async = "proxy" in ins.modifiers and any(m.startswith("async") for m in ins.modifiers)
    if is_async:
        e.line(f"clocks.proxy_fence({e.lanes})")
    if is_async or "mbarrier_init" in ins.modifiers:
        e.line(f"mbar.show({e.lanes})")


def _createpolicy(e: Emitter, ins: Instruction) -> None:
    e.write(ins.args[0], "b64", "u8(0)")


# -------------------------------------------------------------------------------------------------------------
# asynchronous copies
def _cp(e: Emitter, ins: Instruction) -> None:
    m = ins.modifiers
    if m[:2] == ("async", "bulk") or m[:3] == ("reduce", "async", "bulk"):
        return _bulk(e, ins)
    if m[1] == "commit_group":
        return e.line(f"copies.commit({e.lanes}, {e.at})")
    if m[1] == "wait_group":
        return e.line(f"copies.wait({e.lanes}, {e.integer(ins.args[0])})")
    if m[1] == "wait_all":
        return e.line(f"copies.wait_all({e.lanes}, {e.at})")
    if m[1] == "mbarrier":
        return e.line(f"copies.arrive({e.lanes}, {e.address(ins.args[0])}, {'noinc' in m}, {e.at})")
    size = e.read(ins.args[3], "u32") if len(ins.args) > 3 and "L2::cache_hint" not in m else "None"
    number = e.integer(ins.args[2])
    if number not in ((16,) if "cg" in m else (4, 8, 16)):
        raise PtxError(f"line {ins.line}: expected {'16' if 'cg' in m else '4, 8 or 16'} bytes, got {number}: {ins.text}")
    return e.line(f"copies.copy({e.lanes}, {e.address(ins.args[0])}, {e.address(ins.args[1])}, {number}, {size}, {e.at})")


def _bulk(e: Emitter, ins: Instruction) -> None:
    m = ins.modifiers
    if "prefetch" in m:
        return None
    if "commit_group" in m:
        return e.line(f"bulk.commit({e.lanes})")
    if "wait_group" in m:
        return e.line(f"bulk.wait({e.lanes}, {e.integer(ins.args[0])}, {'read' in m})")
    if "tensor" in m:
        return _tensor_copy(e, ins)
    first, second = e.address(ins.args[0]), e.address(ins.args[1])
    size = e.read(ins.args[2], "u32")
    if m[2] == "global":
        return e.line(f"bulk.store({e.lanes}, {first}, {second}, {size}, {e.at})")
    barrier = e.address(ins.args[3])
    mask = e.read(ins.args[4], "u16") if "multicast::cluster" in m else "None"
    source = "global" if m[3] == "global" else "shared"
    return e.line(f"bulk.load({e.lanes}, {first}, {second}, {size}, {barrier}, {mask}, {source!r}, {e.at})")


def _coordinates(e: Emitter, operand: Operand) -> tuple[str, str]:
    """Address of the map, and the coordinates."""
    assert isinstance(operand, Address)
    parts = operand.inner[0] if operand.inner and isinstance(operand.inner[0], tuple) else operand.inner
    return e.address(Address(operand.base, operand.offset)), "".join(f"{e.read(c, 's32')}, " for c in parts)


def _tensor_copy(e: Emitter, ins: Instruction) -> None:
    rank, m = int(ins.types["D"][0]), ins.modifiers
    if m[0] == "reduce" or m[4] == "global":
        tensor, where = _coordinates(e, ins.args[0])
        operation = ins.types.get("O", "")
        return e.line(f"tma.store({e.lanes}, {tensor}, ({where}), {e.address(ins.args[1])}, {rank}, {operation!r}, {e.at})")
    tensor, where = _coordinates(e, ins.args[1])
    mask = e.read(ins.args[3], "u16") if "multicast::cluster" in m else "None"
    target, barrier = e.address(ins.args[0]), e.address(ins.args[2])
    return e.line(f"tma.load({e.lanes}, {target}, {tensor}, ({where}), {barrier}, {mask}, {rank}, {e.at})")


#: What emits an instruction, by its name.
MEMORY: dict[str, Callable[[Emitter, Instruction], None]] = {
    "ld": _ld,
    "ldu": _ld,
    "st": _st,
    "atom": _atom,
    "red": _atom,
    "cvta": _cvta,
    "isspacep": _isspacep,
    "mapa": _mapa,
    "getctarank": _getctarank,
    "fence": _fence,
    "membar": _fence,
    "createpolicy": _createpolicy,
    "cp": _cp,
}
