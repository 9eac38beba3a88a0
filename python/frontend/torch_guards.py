"""What ``torch.export`` has assumed of sizes, as checks of a call: a program holds for sizes of which its guards hold.

``if x.shape[1] % 2`` takes the branch of the example, and leaves ``s27 % 2 != 0`` with the program; so do operators that are
traced by the sizes of the example, and decompositions. Torch also looks at sizes where it asks how tensors lie in memory, and
whether a view can be had of them: that changes nothing in the graph, and is left out. A file that ``torch.export.save`` wrote
does not say where guards come from: all of them count, as in the program itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree
from torch.utils._sympy.printers import PythonPrinter

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError

__all__ = ["GUARDS", "KEPT", "guards_by_symbol", "guards_of", "note_guards"]

#: On an imported function: expressions of ``size(argument, axis)``, each behind the same as the user knows it.
GUARDS = "relax.guards"

#: In a program's ``custom`` metadata: guards by symbol, for those who open its file.
KEPT = "relaxir.guards"

#: What a call does not depend on: arguments are made contiguous.
_OF_MEMORY = ("stride(", "storage_offset(")

#: How torch calls symbols.
_SYMBOL = re.compile(r"\b[suz]\d+\b")

#: Functions of torch that look at how tensors lie in memory, at sizes that are compared here when the model runs, or for the
#: faster one of two ways to one result.
_OF_LAYOUT = {
    "_compute_slice_index", "_reshape_view_helper", "_reshape_view_helper_core_alg", "check_contiguous_sizes_strides",
    "compute_elementwise_output_strides", "infer_size", "is_contiguous", "is_contiguous_for_memory_format",
    "is_non_overlapping_and_dense", "isin", "make_contiguous_strides_for",
}  # fmt: skip
#: Frames of torch around a graph that it traces again: arithmetic on sizes, which stays in the graph.
_OF_TRACING = {("module.py", "_call_impl"), ("functional_tensor.py", "__new__")}
_SQUEEZES = (torch.ops.aten.squeeze.default, torch.ops.aten.squeeze.dim, torch.ops.aten.squeeze.dims)


def guards_of(
    exported: ExportedProgram, prepared: ExportedProgram, placeholders: Sequence[str], names: Mapping[str, str]
) -> list[tuple[str, str]]:
    """What a program assumes, as text for people, and as an expression of ``size(argument, axis)`` and ``symbol(name)``.

    Args:
        exported: as it was exported.
        prepared: the same, perhaps decomposed, which may assume more.
        placeholders: the names of the arguments' placeholders, in their order.
        names: the names of symbols, where they have others than torch gives them.

    Raises:
        RelaxError: an assumption is of something else than sizes of inputs.
    """
    codes = list(dict.fromkeys(_codes(exported, prepared)))
    if not codes:
        return []
    places = _Places(_paths(prepared), _symbols(prepared), placeholders, names)
    found: dict[str, str] = {}
    for code in codes:
        if places.is_of_data(code):
            continue  # the graph asserts it itself
        tree = places.visit(ast.parse(code, mode="eval"))
        found[ast.unparse(_Shown(placeholders).visit(ast.parse(ast.unparse(tree), mode="eval")))] = ast.unparse(tree)
    return list(found.items())


def _codes(exported: ExportedProgram, prepared: ExportedProgram) -> Iterator[str]:
    custom: Any = exported.graph_module.meta.get("custom")
    if isinstance(custom, Mapping) and KEPT in custom:
        yield from custom[KEPT]
    elif not getattr(_shape_env(exported), "source_to_var", None):  # of a file: nothing says which input a symbol is of
        written: Sequence[str] = getattr(exported, "_guards_code", None) or ()
        yield from (code for code in written if not any(word in code for word in _OF_MEMORY))
    for program in (exported, prepared):
        yield from guards_by_symbol(program)


def guards_by_symbol(program: ExportedProgram) -> list[str]:
    """What a program that was exported here assumes, as expressions of its symbols."""
    env = _shape_env(program)
    squeezes = any(_squeezes(node) for node in program.graph.nodes)
    if env is None:
        return []
    exprs = [env.replace(g.expr) for g in env.guards if not _is_of_layout(g, squeezes)]
    return [PythonPrinter().doprint(e) for e in exprs if e is not sympy.true]


def _is_of_layout(guard: Any, squeezes: bool) -> bool:
    """Whether torch has assumed it for how tensors lie in memory; that a size is not one, a squeeze may have read, too."""
    frame = getattr(getattr(guard, "sloc", None), "framework_loc", None)
    name = getattr(frame, "name", None)
    if (Path(getattr(frame, "filename", "")).name, name) in _OF_TRACING:
        return True
    return name in _OF_LAYOUT and not (squeezes and "1" in map(str, guard.expr.args))


def _squeezes(node: torch.fx.Node) -> bool:
    """Whether a size decides what a node removes."""
    if node.target not in _SQUEEZES or not isinstance(node.args[0], torch.fx.Node):
        return False
    x = node.args[0].meta.get("val")
    return isinstance(x, torch.Tensor) and any(isinstance(d, torch.SymInt) for d in x.shape)


def _shape_env(program: ExportedProgram) -> Any:
    modes = (getattr(node.meta.get("val"), "fake_mode", None) for node in program.graph.nodes)
    return next((env for mode in modes if (env := getattr(mode, "shape_env", None)) is not None), None)


def _symbols(program: ExportedProgram) -> dict[str, tuple[str, int] | None]:
    """Of each symbol a placeholder and an axis of that size; None where no input has just that size."""
    found: dict[str, tuple[str, int] | None] = {}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or not isinstance(value, torch.Tensor):
            continue
        for axis, size in enumerate(value.shape):
            expr = size.node.expr if isinstance(size, torch.SymInt) else None
            if isinstance(expr, sympy.Symbol):
                found[expr.name] = found.get(expr.name) or (node.name, axis)
            for inner in expr.free_symbols if isinstance(expr, sympy.Basic) else ():
                found.setdefault(str(inner), None)
    return found


def _paths(program: ExportedProgram) -> dict[str, str]:
    """The placeholder of each input, by how guards name it: ``L['x']``, ``L['xs'][0]``, ``L['flat_args'][0]``."""
    nodes = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    spec: Any = program.call_spec.in_spec
    args, kwargs = pytree.tree_unflatten(range(spec.num_leaves), spec)
    signature = program.module_call_graph[0].signature if program.module_call_graph else None
    names = list(getattr(signature, "forward_arg_names", None) or [])
    found = {f"L['flat_args'][{i}]": node for i, node in enumerate(nodes)}
    for i, argument in enumerate(args):
        for rest, leaf in pytree.tree_leaves_with_path(argument):
            for start in _starts(names[i] if i < len(names) else f"args_{i}"):
                found[f"L{start}{pytree.keystr(rest)}"] = nodes[leaf]
    for path, leaf in pytree.tree_leaves_with_path(kwargs):
        found[f"L{pytree.keystr(path)}"] = nodes[leaf]
    return {ast.unparse(ast.parse(path)): node for path, node in found.items()}


def _starts(name: str) -> list[str]:
    """Of ``*xs`` torch knows the first one as ``xs_0``, and as ``xs[0]``."""
    numbered = re.fullmatch(r"(.+)_(\d+)", name)
    return [f"['{name}']", *([f"['{numbered[1]}'][{numbered[2]}]"] if numbered else [])]


class _Places(ast.NodeTransformer):
    """Writes ``L['x'].size()[1]``, and a symbol of that size, as ``size(0, 1)``, other symbols as ``symbol('s0')``."""

    def __init__(
        self,
        paths: Mapping[str, str],
        symbols: Mapping[str, tuple[str, int] | None],
        placeholders: Sequence[str],
        names: Mapping[str, str],
    ):
        self._paths, self._symbols, self._names = paths, symbols, names
        self._places = {node: i for i, node in enumerate(placeholders)}

    def is_of_data(self, code: str) -> bool:
        """Whether a symbol is no size of an input."""
        return any(name not in self._symbols for name in _SYMBOL.findall(code))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if not isinstance(called, ast.Attribute) or called.attr != "size":
            raise _unknown(node)
        axis: int = ast.literal_eval(node.slice)
        return self._size(node, self._paths.get(ast.unparse(called.value), ""), axis)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._symbols:
            return node
        found = self._symbols[node.id]
        if found is None:
            return ast.Call(ast.Name("symbol"), [ast.Constant(self._names.get(node.id, node.id))], [])
        return self._size(node, *found)

    def _size(self, node: ast.AST, placeholder: str, axis: int) -> ast.AST:
        if placeholder not in self._places:
            raise _unknown(node)
        return ast.Call(ast.Name("size"), [ast.Constant(self._places[placeholder]), ast.Constant(axis)], [])


def _unknown(node: ast.AST) -> RelaxError:
    return RelaxError(f"expected assumptions of sizes of inputs, got {ast.unparse(node)}")


class _Shown(ast.NodeTransformer):
    """Writes ``size(0, 1)`` as ``x.shape[1]``, and ``symbol('n')`` as ``n``."""

    def __init__(self, placeholders: Sequence[str]):
        self._placeholders = placeholders

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "symbol":
            return ast.Name(ast.literal_eval(node.args[0]))
        if not isinstance(node.func, ast.Name) or node.func.id != "size":
            return node
        place: int = ast.literal_eval(node.args[0])
        return ast.Subscript(ast.Attribute(ast.Name(self._placeholders[place]), "shape"), node.args[1])


def note_guards(module: ir.Module, guards: Sequence[tuple[str, str]]) -> None:
    """Has the one function of an imported module know them."""
    if not guards:
        return
    (function,) = module.body.operations
    with module.context:
        texts = [ir.ArrayAttr.get([ir.StringAttr.get(text) for text in pair]) for pair in guards]
        function.attributes[GUARDS] = ir.ArrayAttr.get(texts)
