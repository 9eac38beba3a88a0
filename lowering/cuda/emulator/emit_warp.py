"""Instructions of warps, barriers and tensor cores as calls of the units that do them."""

from __future__ import annotations

from collections.abc import Callable

from .emit_memory import space_of
from .emitter import Emitter
from .findings import PtxError
from .syntax import Instruction, Operand

__all__ = ["WARP", "barrier"]


def _shfl(e: Emitter, ins: Instruction) -> None:
    result, _, valid = str(ins.args[0]).partition("|")
    a, b, c = e.read(ins.args[1], "b32"), e.read(ins.args[2], "u32"), e.read(ins.args[3], "u32")
    both = e.new(f"warp.shuffle({e.lanes}, {ins.modifiers[1]!r}, {a}, {b}, {c}, {e.at})")
    e.write(result, "b32", f"{both}[0]")
    if valid:
        e.write(valid, "pred", f"{both}[1]")


def _vote(e: Emitter, ins: Instruction) -> None:
    kind = ins.modifiers[1]
    text = f"warp.vote({e.lanes}, {kind!r}, {e.read(ins.args[1], 'pred')})"
    e.write(ins.args[0], "b32" if kind == "ballot" else "pred", text)


def _activemask(e: Emitter, ins: Instruction) -> None:
    e.write(ins.args[0], "b32", f"warp.vote({e.lanes}, 'ballot', True)")


def _match(e: Emitter, ins: Instruction) -> None:
    result, _, same = str(ins.args[0]).partition("|")
    both = e.new(f"warp.match({e.lanes}, {ins.modifiers[0]!r}, {e.read(ins.args[1], ins.types['T'])})")
    e.write(result, "b32", f"{both}[0]")
    if same:
        e.write(same, "pred", f"{both}[1]")


def _redux(e: Emitter, ins: Instruction) -> None:
    kind = ins.types["T"]
    e.write(ins.args[0], kind, f"warp.reduce({e.lanes}, {ins.types['O']!r}, {e.read(ins.args[1], kind)})")


def _elect(e: Emitter, ins: Instruction) -> None:
    leader, _, is_leader = str(ins.args[0]).partition("|")
    both = e.new(f"warp.elect({e.lanes})")
    e.write(leader, "b32", f"{both}[0]")
    if is_leader:
        e.write(is_leader, "pred", f"{both}[1]")


def _setmaxnreg(e: Emitter, ins: Instruction) -> None:
    e.line(f"warp.set_registers({e.lanes}, {ins.modifiers[0]!r}, {e.integer(ins.args[0])}, {e.at})")


def barrier(e: Emitter, ins: Instruction, after: str) -> None:
    """bar and barrier; the lanes go on at block ``after``."""
    m, args = ins.modifiers, ins.args
    if "warp" in m:
        _ready(e, e.read(args[0], "b32"))
        e.line(f"clocks.tick(core.rows({e.lanes}))")
        return e.line(f"return {after}")
    aligned = "aligned" in m or (ins.name == "bar")
    if "cluster" in m:
        if aligned:
            _ready(e, "u4(0xFFFFFFFF)")
        return e.line(f"return clusters.{'arrive' if 'arrive' in m else 'wait'}(s, own, {after}, {e.at}, {'relaxed' not in m})")
    if aligned:
        _ready(e, "u4(0xFFFFFFFF)")
    if "red" in m:
        operation = next(x for x in m if x in ("popc", "and", "or"))
        result = str(args[0])
        array = e.array(result, "u4" if operation == "popc" else "b1")
        value = e.read(args[2], "pred")
        return e.line(f"return bars.reduce(s, {e.read(args[1], 'u32')}, {operation!r}, {value}, {array}, {after}, {e.at})")
    number = e.read(args[0], "u32") if args else "u4(0)"
    threads = e.read(args[1], "u32") if len(args) > 1 else "None"
    kind = "arrive" if "arrive" in m else "sync"
    return e.line(f"return bars.reach(s, {kind!r}, {number}, {threads}, {after}, {e.at}, {aligned})")


def _ready(e: Emitter, mask: str) -> None:
    e.line(f"s = core.warps_ready(s, {mask}, own, {e.at})")
    e.line("if s is None: return None")


def _mbarrier(e: Emitter, ins: Instruction) -> None:
    action, args, far = ins.modifiers[0], ins.args, space_of(ins)
    if action == "init":
        return e.line(f"mbar.init({e.lanes}, {e.address(args[0])}, {e.read(args[1], 'u32')}, {far!r}, {e.at})")
    if action == "inval":
        return e.line(f"mbar.invalidate({e.lanes}, {e.address(args[0])}, {far!r}, {e.at})")
    if action in ("arrive", "arrive_drop"):
        return _arrive(e, ins, action, far)
    if action in ("expect_tx", "complete_tx"):
        sign = "" if action == "expect_tx" else "-"
        size = f"{sign}{e.read(args[1], 'u32')}.astype(i8)"
        return e.line(f"mbar.arrive({e.lanes}, {e.address(args[0])}, 0, {size}, {far!r}, {e.at}, False, False)")
    if action == "pending_count":
        return e.write(args[0], "b32", f"mbar.pending({e.read(args[1], 'u64')})")
    parity = "parity" in ins.modifiers
    value = e.read(args[2], "u32" if parity else "u64")
    acquire = "relaxed" not in ins.modifiers
    call = f"mbar.{action}(s, {e.address(args[1])}, {value}, {parity}, own, {far!r}, {e.at}, {acquire})"
    e.line(f"s, done = {call}")
    e.line("if s is None: return None")
    return e.write(args[0], "pred", "done")


def _arrive(e: Emitter, ins: Instruction, action: str, far: str) -> None:
    args = list(ins.args)
    state = args.pop(0) if isinstance(args[0], str) else "_"
    number = e.read(args[1], "u32") if len(args) > 1 else "u4(1)"
    expects = "expect_tx" in ins.modifiers
    arrivals, size = ("1", f"{number}.astype(i8)") if expects else (number, "0")
    release = "relaxed" not in ins.modifiers
    drop, place = action == "arrive_drop", e.address(args[0])
    call = f"mbar.arrive({e.lanes}, {place}, {arrivals}, {size}, {far!r}, {e.at}, {drop}, {release})"
    if state == "_":
        return e.line(call)
    return e.write(state, "b64", call)


# -------------------------------------------------------------------------------------------------------------------
# tensor cores
def _fragment(e: Emitter, operand: Operand) -> str:
    registers = operand if isinstance(operand, tuple) else (operand,)
    return "(" + "".join(f"{e.read(r, 'b32')}, " for r in registers) + ")"


def _count(ins: Instruction) -> int:
    return int(next(m[1:] for m in ins.modifiers if m in ("x1", "x2", "x4")))


def _ldmatrix(e: Emitter, ins: Instruction) -> None:
    results = ins.args[0] if isinstance(ins.args[0], tuple) else (ins.args[0],)
    place = space_of(ins)
    _expect(ins, len(results), _count(ins), "registers")
    loaded = e.new(
        f"mma.load({e.lanes}, {place!r}, {e.address(ins.args[1])}, {len(results)}, {'trans' in ins.modifiers}, {e.at})"
    )
    for index, result in enumerate(results):
        e.write(result, "b32", f"{loaded}[{index}]")


def _stmatrix(e: Emitter, ins: Instruction) -> None:
    parts = ins.args[1] if isinstance(ins.args[1], tuple) else (ins.args[1],)
    _expect(ins, len(parts), _count(ins), "registers")
    place = space_of(ins)
    e.line(
        f"mma.store({e.lanes}, {place!r}, {e.address(ins.args[0])}, {_fragment(e, parts)}, {'trans' in ins.modifiers}, {e.at})"
    )


def _expect(ins: Instruction, got: int, wanted: int, what: str) -> None:
    if got != wanted:
        raise PtxError(f"line {ins.line}: expected {wanted} {what}, got {got}: {ins.text}")


_WIDTH = {"bf16": 2, "f16": 2, "tf32": 4, "s8": 1, "u8": 1, "e4m3": 1, "e5m2": 1}


def _mma(e: Emitter, ins: Instruction) -> None:
    shape = next(m for m in ins.modifiers if m.startswith("m16n8k"))
    depth, types = int(shape[6:]), tuple(ins.types[k] for k in "DABC")
    width = _WIDTH[types[1]]
    halves = [2 if types[k] == "f16" else 4 for k in (0, 3)]
    wanted = (halves[0], 16 * depth * width // 128, 8 * depth * width // 128, halves[1])
    if types[1] == "tf32" or types[1] in ("f16", "bf16") or width == 1:
        for operand, number, name in zip(ins.args, wanted, "dabc", strict=True):
            _expect(ins, len(operand) if isinstance(operand, tuple) else 1, number, f"registers of {name}")
    a, b, c = (_fragment(e, x) for x in ins.args[1:])
    product = e.new(f"mma.multiply({e.lanes}, {depth}, {types!r}, {a}, {b}, {c}, {'satfinite' in ins.modifiers}, {e.at})")
    assert isinstance(ins.args[0], tuple)
    for index, result in enumerate(ins.args[0]):
        e.write(result, "b32", f"{product}[{index}]")


def _wgmma(e: Emitter, ins: Instruction) -> None:
    action = ins.modifiers[0]
    if action == "fence":
        return e.line(f"wgmma.fence(s, {e.at})")
    if action == "commit_group":
        return e.line(f"wgmma.commit(s, {e.at})")
    if action == "wait_group":
        return e.line(f"wgmma.wait(s, {e.integer(ins.args[0])}, {e.at})")
    return _product(e, ins)


def _product(e: Emitter, ins: Instruction) -> None:
    shape = next(m for m in ins.modifiers if m.startswith("m64n"))
    width, depth = (int(x) for x in shape[4:].split("k"))
    types = tuple(ins.types[k] for k in "DAB")
    accumulators, a, b, scale, *flags = ins.args
    assert isinstance(accumulators, tuple)
    _expect(ins, len(accumulators), width // (4 if types[0] == "f16" else 2), "accumulators")
    signs = [e.integer(f) for f in flags]
    in_registers = isinstance(a, tuple)
    if in_registers:
        assert isinstance(a, tuple)
        _expect(ins, len(a), 4, "registers of a")
    first, second, *order = signs if signs else [1, 1]
    if first not in (1, -1) or second not in (1, -1):
        raise PtxError(f"line {ins.line}: expected scales of 1 or -1: {ins.text}")
    transposed = ([0, *order] if in_registers else order) + [0, 0]
    arrays = "(" + "".join(f"{e.array(str(r), 'u4')}, " for r in accumulators) + ")"
    numbers = tuple(e.register_number(str(r)) for r in accumulators)
    left = _fragment(e, a) if in_registers else e.read(a, "u64")
    form = f"({width}, {depth}, {types!r}, {first}, {second}, {transposed[0]}, {transposed[1]})"
    known, right, add = e.constant(repr(numbers)), e.read(b, "u64"), e.read(scale, "pred")
    e.line(f"wgmma.multiply(s, {form}, {known}, {arrays}, {left}, {right}, {add}, {e.at})")
    for register in accumulators:
        if str(register) in e.flow.partly:
            e.line(f"core.written[{e.register_number(str(register))}][s] = True")


#: What emits an instruction, by its name.
WARP: dict[str, Callable[[Emitter, Instruction], None]] = {
    "shfl": _shfl,
    "vote": _vote,
    "activemask": _activemask,
    "match": _match,
    "redux": _redux,
    "elect": _elect,
    "setmaxnreg": _setmaxnreg,
    "mbarrier": _mbarrier,
    "ldmatrix": _ldmatrix,
    "stmatrix": _stmatrix,
    "mma": _mma,
    "wgmma": _wgmma,
}
