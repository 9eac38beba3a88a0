"""Who calls whom in a module, which functions are recursive, and which private ones nothing refers to."""

from __future__ import annotations

from collections.abc import Iterator

from .bindings import func, ir
from .functions import functions, is_private, name_of
from .traversal import nested_operations

__all__ = ["CallGraph", "callee_of", "calls_in", "collect_symbols", "referenced_symbols", "unreferenced_private_functions"]


def callee_of(call: ir.Operation) -> str:
    """The name of the function that a ``func.call`` calls."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def calls_in(op: ir.Operation) -> list[ir.Operation]:
    """All calls inside of a function or another op, nested ones too, in order."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.name == "func.call" and inner != op:
            found.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)  # a third of the time that a list of all operations takes
    return found


class CallGraph:
    """The functions of a module by name; calls are read when they are asked for."""

    def __init__(self, module: ir.Operation):
        self._functions = {name_of(f): f for f in functions(module)}
        self._recursive: frozenset[str] | None = None

    def function(self, name: str) -> func.FuncOp | None:
        """The function of that name in the module, None for a symbol that is none."""
        return self._functions.get(name)

    def calls(self) -> dict[str, list[ir.Operation]]:
        """The calls of each function, by the function called."""
        found: dict[str, list[ir.Operation]] = {}
        for function in self._functions.values():
            for call in calls_in(function.operation):
                found.setdefault(callee_of(call), []).append(call)
        return found

    def callees_first(self) -> list[tuple[str, func.FuncOp]]:
        """All functions with their names, each after those it calls; within a cycle in some order."""
        return [(name, self._functions[name]) for component in self._components() for name in component]

    @property
    def recursive(self) -> frozenset[str]:
        """Functions that can call themselves, directly or through others; as of the first time this is asked."""
        if self._recursive is None:
            self._recursive = frozenset(n for c in self._components() for n in c if len(c) > 1 or n in self._callees(n))
        return self._recursive

    def cycle(self) -> list[func.FuncOp]:
        """Functions each of which calls the next, and the last the first; empty when no function is recursive."""
        if not self.recursive:
            return []
        # Each recursive function calls one of its own component, so going on ends in a circle.
        way = [next(n for n in self._functions if n in self.recursive)]
        component = next(c for c in self._components() if way[0] in c)
        while (following := next(n for n in self._callees(way[-1]) if n in component)) not in way:
            way.append(following)
        return [self._functions[n] for n in way[way.index(following) :]]

    def _callees(self, name: str) -> list[str]:
        found = dict.fromkeys(callee_of(call) for call in calls_in(self._functions[name].operation))
        return [callee for callee in found if callee in self._functions]

    def _components(self) -> list[list[str]]:
        """Strongly connected components, callees first. Tarjan's algorithm, without recursion: call chains may be long.

        Source: R. Tarjan, Depth-first search and linear graph algorithms, SIAM Journal on Computing 1 (1972).
        """
        state = _Tarjan()
        for name in self._functions:
            if name not in state.index:
                self._visit(name, state)
        return state.components

    def _visit(self, root: str, state: _Tarjan) -> None:
        work: list[tuple[str, Iterator[str]]] = [(root, iter(self._callees(root)))]
        state.enter(root)
        while work:
            name, rest = work[-1]
            callee = next(rest, None)
            if callee is None:
                work.pop()
                state.leave(name, work[-1][0] if work else None)
            elif callee not in state.index:
                state.enter(callee)
                work.append((callee, iter(self._callees(callee))))
            elif callee in state.on_stack:
                state.low[name] = min(state.low[name], state.index[callee])


class _Tarjan:
    """The bookkeeping of one run: order of discovery, lowest reachable, and the open stack."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.stack: list[str] = []
        self.on_stack: set[str] = set()
        self.components: list[list[str]] = []

    def enter(self, name: str) -> None:
        self.index[name] = self.low[name] = len(self.index)
        self.stack.append(name)
        self.on_stack.add(name)

    def leave(self, name: str, caller: str | None) -> None:
        if caller is not None:
            self.low[caller] = min(self.low[caller], self.low[name])
        if self.low[name] != self.index[name]:
            return
        component: list[str] = []
        while not component or component[-1] != name:
            component.append(self.stack.pop())
        self.on_stack.difference_update(component)
        self.components.append(component)


def referenced_symbols(op: ir.Operation) -> set[str]:
    """The names of all symbols that attributes inside of an op refer to."""
    found: set[str] = set()
    for inner in nested_operations(op):
        for _, attribute in inner.attributes.items():
            collect_symbols(attribute, found)
    return found


def collect_symbols(attribute: ir.Attribute, found: set[str]) -> None:
    """Adds the names of the symbols that an attribute refers to."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        found.add(attribute.value)
    elif isinstance(attribute, ir.SymbolRefAttr):
        found.update(attribute.value)
    elif isinstance(attribute, ir.ArrayAttr):
        for item in attribute:
            collect_symbols(item, found)
    elif isinstance(attribute, ir.DictAttr):
        for item in attribute:
            collect_symbols(item.attr, found)


def unreferenced_private_functions(module: ir.Operation) -> list[func.FuncOp]:
    """Private functions with a body that no public function refers to, directly or through private ones."""
    table = {name_of(f): f for f in functions(module)}
    live = _direct_roots(module, table)
    pending = list(live)
    while pending:
        for name in referenced_symbols(table[pending.pop()].operation):
            if name in table and name not in live:
                live.add(name)
                pending.append(name)
    return [f for name, f in table.items() if name not in live and len(f.regions[0].blocks)]


def _direct_roots(module: ir.Operation, table: dict[str, func.FuncOp]) -> set[str]:
    """Public functions, and what their own attributes or ops that are no functions refer to."""
    live = {name for name, f in table.items() if not is_private(f)}
    for op in module.regions[0].blocks[0].operations:
        named: set[str] = set()
        for _, attribute in op.operation.attributes.items():
            collect_symbols(attribute, named)
        if not isinstance(op, func.FuncOp):
            named |= referenced_symbols(op.operation)
        live |= named & set(table)
    return live
