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
from collections.abc import Mapping

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of, calls_in
from ...dialect.functions import body_of, functions, is_private, name_of
from ...dialect.plugins import KERNELS, plugins
from ...dialect.traversal import operations
from ..compiler import KernelStore
from ..marks import KERNEL, KERNEL_TEXT
from ..target import Target
from .kernel_arguments import NUMBERED, KernelArguments

__all__ = ["KnownKernels", "named_texts"]


class KnownKernels:
    """The kernels of one module that a store has.

    Attributes:
        codes: the object code of each, by symbol.
    """

    def __init__(self, store: KernelStore, target: Target):
        self.codes: dict[str, bytes] = {}
        self._store, self._target = store, target
        self._declared: list[str] = []

    def link(self, module: ir.Operation) -> None:
        """Declares the kernels that the store has, and says what the others are, in place.

        Args:
            module: with buffers and planned kernels.
        """
        if plugins(KERNELS):  # templates of others tell the report what they take
            return
        renamed: dict[str, str] = {}
        for function in [f for f in functions(module) if _is_apart(f)]:
            name, digest = name_of(function), self._digest(function)
            stored = self._store.get(digest)
            if stored is None:
                function.attributes[KERNEL_TEXT] = ir.StringAttr.get(f"{digest} {_count(function)}", function.context)
            else:
                renamed[name] = self._declare(function, stored)
        for call in [c for f in functions(module) if KERNEL not in f.attributes for c in calls_in(f.operation)]:
            if callee_of(call) in renamed:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(renamed[callee_of(call)], call.context)

    def keep(self, module: ir.Operation, symbols: Mapping[str, str], codes: Mapping[str, bytes]) -> None:
        """Keeps what was compiled.

        Args:
            module: the lowered module.
            symbols: of the kernels that were compiled apart, by name in the module.
            codes: their code, by symbol.
        """
        for name, digest, found in _marked(module):
            symbol = symbols.get(name)
            if symbol is not None:
                head = json.dumps([symbol, *found.numbers]).encode()
                self._store.put(digest, head + b"\n" + codes[symbol])

    def _digest(self, function: func.FuncOp) -> str:
        text = function.operation.get_asm(enable_debug_info=False, use_local_scope=True, assume_verified=True)
        return hashlib.sha256(f"{self._target!r}\n{text[text.index('(') :]}".encode()).hexdigest()

    def _declare(self, function: func.FuncOp, stored: bytes) -> str:
        """Puts a declaration in the place of a kernel. Returns its name: its symbol, and a number, as those of other types may
        have the same code.
        """
        head, _, code = stored.partition(b"\n")
        symbol, *numbers = json.loads(head)
        name = f"{symbol}{NUMBERED}{len(self._declared)}"
        with ir.InsertionPoint(function), function.location:
            declared = func.FuncOp(name, function.type, visibility="private")
        KernelArguments.read(numbers).write(declared)
        self.codes[symbol] = code
        self._declared.append(name)
        function.operation.erase()
        return name


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


def _is_apart(function: func.FuncOp) -> bool:
    """Whether a function is a kernel that knows nothing of its module."""
    attributes = function.attributes
    if KERNEL not in attributes or body_of(function) is None or not is_private(function) or function.type.results:
        return False
    return not calls_in(function.operation)


def _count(function: func.FuncOp) -> int:
    """How many arguments a function has in LLVM's dialect: a buffer is two pointers, an offset, sizes and strides."""
    return sum(3 + 2 * t.rank if isinstance(t, ir.MemRefType) else 1 for t in function.type.inputs)
