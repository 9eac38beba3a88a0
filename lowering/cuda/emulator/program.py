"""A PTX text to kernels: checked against the instruction set, variables placed, compiled when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from .carry import expand_carries
from .codegen import generate
from .core import RESERVED, Kernel
from .emit_memory import space_of
from .emitter import Symbol
from .findings import Finding, PtxError
from .flow import reads
from .forms import Target
from .inline import inlined
from .isa import ISA
from .syntax import WIDTH, Function, Instruction, Module, Variable, parse

__all__ = ["Program", "program"]

_RED_ZONE = 16  # bytes between variables in shared memory
_NEWEST = 88  # the ISA's version that the tables are of, times ten


class Program:
    """What a PTX text has. Nothing in it belongs to a device."""

    def __init__(self, module: Module):
        self.module = module
        self.target = Target.named(module.target)
        self.kernels: dict[str, Kernel] = {}
        if module.version > _NEWEST:
            raise PtxError(f"expected ptx version {_NEWEST / 10} or older, got {module.version / 10}")
        for function in module.functions.values():
            expand_carries(function)
            for instruction in function.code:
                ISA.check(instruction, function.registers, self.target, module.version)

    @property
    def globals(self) -> list[Variable]:
        """Variables in device memory."""
        return [v for v in self.module.variables if v.space in ("global", "const")]

    def kernel(self, name: str, initialised: bool = True) -> Kernel:
        """A kernel by name.

        Raises:
            PtxError: there is none, or it does not compile.
            Finding: it reads registers that nothing writes (``initialised``).
        """
        if name not in self.kernels:
            function = self.module.functions.get(name)
            if function is None or not function.is_entry:
                raise PtxError(f"expected a kernel of the module, got '{name}'")
            self.kernels[name] = self._compiled(inlined(function, self.module.functions))
        kernel = self.kernels[name]
        unwritten = {n: i for n, i in kernel.code.never.items() if i.name not in ("mov", "selp")}
        if initialised and unwritten:
            register, instruction = next(iter(unwritten.items()))
            message = f"register {register} is read and never written"
            raise Finding("uninitialised", message, name, instruction.line, instruction.text, instruction.place)
        return kernel

    def _compiled(self, function: Function) -> Kernel:
        symbols = {p.name: Symbol("param", p.offset) for p in function.params}
        symbols |= {v.name: Symbol("global", 0) for v in self.globals}
        used = {name.partition("+")[0] for i in function.code for name in reads(i)} | _stored(function)
        shared = [v for v in [*self.module.variables, *function.variables] if v.space == "shared" and v.name in used]
        ranges, end = _place_shared(shared, symbols)
        local = _place_local([v for v in function.variables if v.space == "local"], symbols)
        code = generate(function, symbols)
        return Kernel(function, code, ranges, end, local, _granule(function, "shared"), _granule(function, "global"),
                      any(_orders_blocks(i) for i in function.code), _is_async(function))  # fmt: skip


def _stored(function: Function) -> set[str]:
    """Variables that instructions without a result name as their first operand."""
    from .syntax import Address

    return {arg.base.partition("+")[0] for i in function.code for arg in i.args if isinstance(arg, Address)}


def _place_shared(variables: list[Variable], symbols: dict[str, Symbol]) -> tuple[dict[str, tuple[int, int]], int]:
    ranges, end = dict[str, tuple[int, int]](), RESERVED
    for variable in variables:
        if variable.size:
            start = -(-(end + (_RED_ZONE if end > RESERVED else 0)) // variable.align) * variable.align
            symbols[variable.name] = Symbol("shared", start)
            end = start + variable.size
            ranges[variable.name] = (start, end)
    dynamic = [v for v in variables if not v.size]
    align = max([16, *(v.align for v in dynamic)])
    end = -(-end // align) * align
    symbols.update({v.name: Symbol("shared", end) for v in dynamic})
    return ranges, end


def _place_local(variables: list[Variable], symbols: dict[str, Symbol]) -> int:
    end = 0
    for variable in variables:
        end = -(-end // variable.align) * variable.align
        symbols[variable.name] = Symbol("local", end)
        end += variable.size
    return -(-end // 16) * 16


def _granule(function: Function, space: str) -> int:
    """The narrowest write to a space, at most 16 bytes: what accesses are told apart by."""

    def widths() -> Iterator[int]:
        for i in function.code:
            if i.name == "cp" and "bulk" not in i.modifiers and len(i.args) > 2 and space == "shared":
                yield int(str(i.args[2]), 0)
            elif i.name in ("st", "atom", "red") and space_of(i) in (
                space,
                "generic",
                "cluster" if space == "shared" else space,
            ):
                yield WIDTH[i.types["T"]] * next((int(m[1:]) for m in i.modifiers if m in ("v2", "v4")), 1)
            elif i.name == "cp" and space == "global":
                yield 4  # tensors may end anywhere, but rows are multiples of 16 bytes apart

    return min(16, *widths(), 16)


def _orders_blocks(i: Instruction) -> bool:
    """Whether an instruction can order blocks of a launch through global memory."""
    orders = {"acquire", "release", "acq_rel", "volatile", "gl", "sc"} & set(i.modifiers)
    if not orders or space_of(i) in ("shared", "cluster") or i.name in ("mbarrier", "barrier"):
        return False
    return i.name in ("ld", "st", "atom", "red", "membar") or (
        i.name == "fence" and ("gpu" in i.modifiers or "sys" in i.modifiers)
    )


def _is_async(function: Function) -> bool:
    cluster = function.limits.get("cluster", [1])
    return any(size > 1 for size in cluster) or any(
        i.name in ("mbarrier", "wgmma", "cp") or "cluster" in i.modifiers for i in function.code
    )


@lru_cache(256)
def program(text: str) -> Program:
    """The program of a PTX text; each text is read once per process. Raises PtxError."""
    return Program(parse(text))
