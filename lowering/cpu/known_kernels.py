"""Kernels that were compiled for another module are not lowered again: their functions become declarations of code there is.

Before, behind the passes that plan kernels::

    call @kernel_0(%x, %y) : (memref<64xf32>, memref<64xf32>) -> ()
    func.func private @kernel_0(%x: memref<64xf32>, %y: memref<64xf32>) attributes {relax.kernel} { linalg.generic ... }

after, of one that the store has::

    call @kernel.5ee5bb..0(%x, %y) : (memref<64xf32>, memref<64xf32>) -> ()
    func.func private @kernel.5ee5bb..0(memref<64xf32>, memref<64xf32>) attributes {relax.arguments = array<i64: 10, 1, 6>}

and one that it has not gets ``relax.kernel_text``, under which :meth:`KnownKernels.keep` keeps it once it is compiled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of, calls_in
from ...dialect.functions import body_of, functions, is_private, name_of
from ...dialect.plugins import KERNELS, plugins
from ...dialect.traversal import operations
from ..compiler import KernelStore
from ..marks import KERNEL, KERNEL_TEXT
from ..target import Target
from .kernel_arguments import NUMBERED, KernelArguments

__all__ = ["KnownKernels", "call_declared", "count_of", "declare", "is_apart", "named_texts"]


class KnownKernels:
    """The kernels of one module that a store has.

    Attributes:
        codes: the object code of each, by symbol.
    """

    def __init__(self, store: KernelStore, target: Target):
        self.codes: dict[str, bytes] = {}
        self._store, self._target = store, target

    def link(self, module: ir.Operation) -> None:
        """Declares the kernels that the store has, and says what the others are, in place.

        Args:
            module: with buffers and planned kernels.
        """
        if plugins(KERNELS):  # templates of others tell the report what they take
            return
        renamed: dict[str, str] = {}
        for function in [f for f in functions(module) if is_apart(f)]:
            name, digest = name_of(function), self._digest(function)
            stored = self._store.get(digest)
            if stored is None:
                function.attributes[KERNEL_TEXT] = ir.StringAttr.get(f"{digest} {count_of(function)}", function.context)
            else:
                renamed[name] = self._declare(module, function, stored)
        call_declared(module, renamed)

    def keep(
        self,
        module: ir.Operation,
        symbols: Mapping[str, str],
        codes: Mapping[str, bytes],
        early: Iterable[tuple[str, str, KernelArguments]] = (),
    ) -> None:
        """Keeps what was compiled.

        Args:
            module: the lowered module.
            symbols: of the kernels that were compiled apart, by name in the module.
            codes: their code, by symbol.
            early: of kernels that are not in the module any more, what ``relax.kernel_text`` was, the symbol and the arguments.
        """
        made = [(digest, symbols[name], found) for name, digest, found in _marked(module) if name in symbols]
        made += [(text.partition(" ")[0], symbol, found) for text, symbol, found in early]
        for digest, symbol, found in made:
            head = json.dumps([symbol, *found.numbers]).encode()
            self._store.put(digest, head + b"\n" + codes[symbol])

    def _digest(self, function: func.FuncOp) -> str:
        text = function.operation.get_asm(enable_debug_info=False, use_local_scope=True, assume_verified=True)
        return hashlib.sha256(f"{self._target!r}\n{text[text.index('(') :]}".encode()).hexdigest()

    def _declare(self, module: ir.Operation, function: func.FuncOp, stored: bytes) -> str:
        """Puts a declaration in the place of a kernel. Returns its name."""
        head, _, code = stored.partition(b"\n")
        symbol, *numbers = json.loads(head)
        self.codes[symbol] = code
        return declare(module, function, symbol, KernelArguments.read(numbers))


def declare(module: ir.Operation, function: func.FuncOp, symbol: str, arguments: KernelArguments) -> str:
    """Puts a declaration in the place of a kernel.

    Args:
        module: which has it.
        function: the kernel, which is erased.
        symbol: of its code.
        arguments: those of the code.

    Returns:
        Its name: the symbol, and a number, as kernels of other types may have the same code.
    """
    taken, number = ir.SymbolTable(module), 0
    while f"{symbol}{NUMBERED}{number}" in taken:
        number += 1
    with ir.InsertionPoint(function), function.location:
        declared = func.FuncOp(f"{symbol}{NUMBERED}{number}", function.type, visibility="private")
    arguments.write(declared)
    function.operation.erase()
    return name_of(declared)


def call_declared(module: ir.Operation, renamed: Mapping[str, str]) -> None:
    """Has a module call kernels by new names, given by the old ones."""
    for call in [c for f in functions(module) if KERNEL not in f.attributes for c in calls_in(f.operation)]:
        if callee_of(call) in renamed:
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(renamed[callee_of(call)], call.context)


def named_texts(module: ir.Operation) -> set[str]:
    """The kernels of a lowered module that :meth:`KnownKernels.keep` keeps, by name."""
    return {name for name, _, _ in _marked(module)}


def _marked(module: ir.Operation) -> list[tuple[str, str, KernelArguments]]:
    """Name, digest and arguments of the kernels that are to be kept, but those that callers had to lend memory to."""
    found: list[tuple[str, str, KernelArguments]] = []
    for op in operations(module.regions[0].blocks[0]):
        arguments = KernelArguments.of(op) if KERNEL_TEXT in op.attributes else None
        if arguments is None:
            continue
        digest, _, count = ir.StringAttr(op.attributes[KERNEL_TEXT]).value.partition(" ")
        if int(count) == arguments.count:
            found.append((ir.StringAttr(op.attributes["sym_name"]).value, digest, arguments))
    return found


def is_apart(function: func.FuncOp) -> bool:
    """Whether a function is a kernel that knows nothing of its module."""
    attributes = function.attributes
    if KERNEL not in attributes or body_of(function) is None or not is_private(function) or function.type.results:
        return False
    return not calls_in(function.operation)


def count_of(function: func.FuncOp) -> int:
    """How many arguments a function has in LLVM's dialect: a buffer is two pointers, an offset, sizes and strides."""
    return sum(3 + 2 * t.rank if isinstance(t, ir.MemRefType) else 1 for t in function.type.inputs)
