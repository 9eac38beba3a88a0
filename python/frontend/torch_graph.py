"""ExportedProgram to the torch dialect by torch-mlir's importer: every weight an argument, every op with its source line."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import sympy
import torch
from torch._decomp import get_decompositions
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from ..dialect.bindings import dialect_module, extras_module, ir
from ..dialect.errors import RelaxError
from ..dialect.functions import KEYWORD, NAME, STATE
from . import torch_ops
from .custom_operators import composites, extern_operators, registered_operator
from .flex_attention import expand_flex_attention
from .torch_aliases import united
from .torch_antialiasing import antialiased_resampling
from .torch_complex import REFUSED, is_complex, split_complex
from .torch_copies import exact_copies
from .torch_decomposing import decomposing
from .torch_extern_nodes import has_own_form, import_extern, operator_of
from .torch_functional import functional
from .torch_graph_numbers import ON_NUMBERS, in_whole_numbers, known_number
from .torch_grids import grid_sampling
from .torch_import_cache import ImportCache
from .torch_op import HANDLERS
from .torch_program import Program, Returned
from .torch_recurrent import recurrent
from .torch_resampling import cubic_resampling, linear_resampling
from .torch_strided import WRITTEN, strided_as_indices, strided_writes
from .torch_subgraphs import import_higher_order, refused_graphs
from .torch_values import ALIKE, EXTREME, EXTREMES, KIND, SIZES, SYMBOL, SYMBOLS
from .torch_weights import first_value

__all__ = [
    "GraphSource", "can_decompose", "decomposed", "decompositions", "import_graph", "importable", "is_plain", "operator_name",
]  # fmt: skip

fx_importer = extras_module("extras.fx_importer")
_decompositions = extras_module("extras.fx_decomp_util")

#: What torch-mlir's importer raises for a node or a type that it does not know.
_IMPORT_ERRORS = (AssertionError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)

#: The key under which torch's dispatcher has operators that are made of others.
_COMPOSITE = "CompositeImplicitAutograd"

#: What the importer's rewriting of nodes leaves out.
_ASSERT = torch.ops.aten._assert_async.msg

#: What makes an element of a tensor a number.
_ELEMENTS = (torch.ops.aten.Int.Tensor, torch.ops.aten._local_scalar_dense.default, torch.ops.aten.item.default)


class GraphSource(Protocol):
    """A graph of ATen operators, what its placeholders are, and the ranges of its symbols."""

    @property
    def graph(self) -> torch.fx.Graph: ...
    @property
    def graph_signature(self) -> ExportGraphSignature: ...
    @property
    def range_constraints(self) -> Mapping[Any, Any]: ...


def decomposed(program: ExportedProgram, also: Collection[str] = ()) -> ExportedProgram:
    """The program with every operator decomposed that the op map does not write itself, and complex numbers as pairs.

    torch-mlir's default table turns linear into permute, view, mm, 2 mul and add, and layer_norm into f64 reductions: 236 nodes
    for a BERT of 64. What has a relax form stays whole.

    Args:
        program: the program; it is not changed.
        also: names of operators to decompose although the map has them, because it cannot write some use of theirs.

    Raises:
        RelaxError: torch fails to run its own decompositions.
    """
    try:
        with decomposing():
            table = decompositions(also)
            result = exact_copies(program).run_decompositions(table)
            expand_flex_attention(result.graph_module, table)
    except Exception as error:  # torch raises what it likes here
        raise RelaxError(f"torch cannot decompose the program: {_first_line(error)}") from error
    specs = result.graph_signature.input_specs
    split_complex(result.graph, {s.arg.name for s in specs if s.kind is not InputKind.USER_INPUT})
    return result


def decompositions(also: Collection[str] = ()) -> dict[Any, Any]:
    """How operators are decomposed that the op map does not write itself, those named ``also``, and those of other packages."""
    torch_ops.load()
    composite = torch._C._dispatch_get_registrations_for_dispatch_key(_COMPOSITE)
    others = tuple(registered_operator(name) for name in composite if not name.startswith("aten::"))
    table, names = _all_decompositions(tuple(composite), others)
    kept = HANDLERS.keys() | extern_operators().keys()
    needed = {op: how for op, how in table.items() if names[op] in also or names[op] not in kept}
    asserted = {
        torch.ops.aten._assert_async.default: _assert_with_message,
        torch.ops.aten._linalg_check_errors.default: _assert_factored,
    }
    resampling = linear_resampling() | cubic_resampling() | antialiased_resampling()
    return asserted | needed | recurrent(needed) | resampling | grid_sampling() | strided_writes() | composites()


@functools.lru_cache(maxsize=1)
def _all_decompositions(composite: tuple[str, ...], others: tuple[Any, ...]) -> tuple[dict[Any, Any], dict[Any, str]]:
    """What torch and torch-mlir decompose, and the operators' names: 25 ms, so it is kept.

    Args:
        composite: names of the operators that are made of others, which torch looks through; imports of packages add some.
        others: those that are not torch's own, which may be registered again under the same name.
    """
    table = dict(torch.export.default_decompositions())
    table.update(get_decompositions(_decompositions.DEFAULT_DECOMPOSITIONS))
    return table, {op: operator_name(op) for op in table}


def _assert_with_message(holds: torch.Tensor) -> None:
    """The overload that torch takes for no dead code."""
    _ASSERT(holds, "expected what the model asserts")


def _assert_factored(info: torch.Tensor, api_name: str, *, is_matrix: bool) -> None:
    """What LAPACK tells of each matrix: 0 where its factors were found."""
    del is_matrix
    _ASSERT((info == 0).all(), f"{api_name}: expected matrices that have an inverse, or that are positive definite")


def importable(program: ExportedProgram) -> ExportedProgram:
    """The program in operators that are imported: as it is, without its writes, or decomposed."""
    if is_plain(program):
        return program
    without_writes = functional(program := united(program))
    return without_writes if without_writes and is_plain(without_writes) else decomposed(program)


def is_plain(program: ExportedProgram) -> bool:
    """Whether the program can be imported as it was exported: the map has every operator, none works in place or on complex
    numbers, and torch-mlir rewrites no node. That saves the seconds of :func:`decomposed`, nine tenths of an import.
    """  # fmt: skip
    torch_ops.load()
    others, externs = composites(), extern_operators()
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    known = (_is_plain(n.target, externs) and n.target not in others and not _keeps_statistics(n) for n in nodes)
    return not any(map(is_complex, nodes)) and all(known)


def _keeps_statistics(node: torch.fx.Node) -> bool:
    """Whether it is a batch norm in training, which works in place, though its schema does not say so."""
    return node.target is torch.ops.aten.batch_norm.default and bool(node.args[5])


def _is_plain(target: Any, externs: Collection[str]) -> bool:
    if isinstance(target, torch._ops.OpOverload):
        is_size = target in fx_importer.SYMBOLIC_TORCH_OPS
        rewritten = target in fx_importer.NODE_CANONICALIZE and target is not _ASSERT
        known = operator_name(target) in externs or (operator_name(target) in HANDLERS and not rewritten)
        return is_size or (known and not target._schema.is_mutable)
    return fx_importer.is_builtin_function_or_method(target)


def can_decompose(names: Collection[str]) -> set[str]:
    """Those of the operators that torch has a decomposition for."""
    table = [*torch.export.default_decompositions(), *get_decompositions(_decompositions.DEFAULT_DECOMPOSITIONS)]
    return {operator_name(op) for op in table} & set(names)


def import_graph(
    exported: GraphSource, program: Program, names: dict[str, str], context: ir.Context, entry: str = "main"
) -> ir.Module:
    """A module with one function in the torch dialect.

    Args:
        exported: an ExportedProgram, decomposed or plain, or another graph; no weight is read.
        program: its signature. Arguments are in that order, results too.
        names: names for symbols of the graph.
        context: where the module is made; gets the torch dialect.
        entry: the function's name.

    Raises:
        RelaxError: torch-mlir cannot import an input or output, for example for its dtype.

    What torch-mlir's importer cannot take becomes ``torch.operator`` of that name, for the conversion to report.
    """
    dialect_module("torch").register_dialect(context)
    importer = _Importer(context=context, graph_node_importer_cls=_NodeImporter)
    strided_as_indices(exported.graph)
    placeholders = {n.name: n for n in exported.graph.nodes if n.op == "placeholder"}
    importer.aliases = {alias: placeholders[canonical] for alias, canonical in program.aliases.items()}
    importer.externs = extern_operators().keys()
    importer._cc = ImportCache(context, names)
    view = types.SimpleNamespace(
        graph=exported.graph,
        graph_signature=_all_inputs(exported, program),
        state_dict={},
        constants={},
        range_constraints={k: v for k, v in exported.range_constraints.items() if isinstance(k, sympy.Symbol)},
    )
    with context:
        try:
            function = importer.import_program(view, func_name=entry, import_symbolic_shape_expressions=True)
        except _IMPORT_ERRORS as error:
            raise RelaxError(
                f"torch-mlir cannot import the program: {_first_line(error)}{_named_by(error, program, placeholders)}"
            ) from error
        named = zip(program.arguments, _named((a.kind, a.name) for a in program.arguments), strict=True)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([_with_number(given, a.alike) for a, given in named])
        function.attributes["res_attrs"] = _named((r.kind, r.name) for r in program.results)
        if program.state:
            with function.location:
                function.attributes[STATE] = ir.DictAttr.get({n: first_value(t) for n, t in program.state.items()})
        keywords = [ir.StringAttr.get(a.name) for a in program.arguments if a.keyword]
        if keywords:
            function.attributes[KEYWORD] = ir.ArrayAttr.get(keywords)
    return importer.module


def _named_by(error: Exception, program: Program, placeholders: Mapping[str, torch.fx.Node]) -> str:
    """The argument of the dtype that an error names."""
    dtypes = {a.name: getattr(placeholders[a.node].meta.get("val"), "dtype", None) for a in program.arguments}
    found = [name for name, dtype in dtypes.items() if dtype is not None and str(dtype) in str(error)]
    return f" of '{found[0]}'" if found else ""


def _output(result: Returned) -> TensorArgument | ConstantArgument:
    return TensorArgument(result.node) if result.node is not None else ConstantArgument(result.name, result.value)


def _named(items: Iterable[tuple[str, str]]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get(
        [ir.DictAttr.get({KIND: ir.StringAttr.get(kind), NAME: ir.StringAttr.get(name)}) for kind, name in items]
    )


def _with_number(attributes: ir.Attribute, alike: int | None) -> ir.Attribute:
    if alike is None:
        return attributes
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), alike)
    return ir.DictAttr.get({e.name: e.attr for e in ir.DictAttr(attributes)} | {ALIKE: number})


def _all_inputs(exported: GraphSource, program: Program) -> ExportGraphSignature:
    """The signature with weights turned into user inputs and changed buffers into user outputs."""
    inputs = [InputSpec(InputKind.USER_INPUT, TensorArgument(a.node), None) for a in program.arguments]
    inputs += [s for s in exported.graph_signature.input_specs if s.arg.name in program.constants]
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, _output(r), None) for r in program.results]
    return ExportGraphSignature(input_specs=inputs, output_specs=outputs)


class _Importer(fx_importer.FxImporter):
    """torch-mlir's importer without child modules: the graphs of control flow are imported where it is.

    Attributes:
        aliases: for a placeholder of a tied weight, by name, the one that stands for all of them.
        externs: names of the operators that C functions compute.
    """

    aliases: Mapping[str, torch.fx.Node]
    externs: Collection[str]

    def _import_all_child_modules(self, *args: Any) -> None:
        return


class _NodeImporter(fx_importer.GraphNodeImporter):
    """Imports nodes one by one; one that cannot be imported becomes a ``torch.operator`` that says why."""

    __slots__: list[str] = []

    def resolve_node_value(self, node: torch.fx.Node, result_index: int = 0) -> ir.Value:
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.SymInt):
            return self._size(node.meta["val"].node.expr)
        return super().resolve_node_value(self.fx_importer.aliases.get(node.name, node), result_index)

    def _size(self, expr: sympy.Expr) -> ir.Value:
        """A size that is an input of the graph: a number, or a symbol, which a dimension of another input binds."""
        if isinstance(expr, sympy.Integer):
            return self._import_literal(int(expr))
        name = self._cc.symbol_name(expr)
        if name not in self._symbol_to_value:
            self._symbol_to_value[name] = self._new_symbol(name)
        return self._symbol_to_value[name]

    def import_nodes(self, nodes: Iterable[torch.fx.Node], **_: Any) -> None:
        with ir.InsertionPoint(self._b):
            self._import_shape_symbols_with_guards(ir.Location.unknown(), self._cc.get_symbolic_guards())
            for node in nodes:
                self._import_node(node)

    def _import_node(self, node: torch.fx.Node) -> None:
        location = self._cc.get_node_location(node)
        if node.op == "call_function":
            try:
                if REFUSED in node.meta:
                    raise NotImplementedError(node.meta[REFUSED])
                self._dispatch(location, node)
                self._note_symbol(node)
            except _IMPORT_ERRORS as error:
                self._placeholder(location, node, error)
        with location:
            self._bind_shape(node)

    def _note_symbol(self, node: torch.fx.Node) -> None:
        """Says of an element of a tensor that is a number by which symbol shapes know it."""
        value = node.meta.get("val")
        if node.target in _ELEMENTS and isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol):
            owner = self._v[node, 0].owner
            owner.attributes[SYMBOL] = ir.StringAttr.get(self._cc.symbol_name(value.node.expr))

    def _dispatch(self, location: ir.Location, node: torch.fx.Node) -> None:
        target = node.target
        if target is operator.getitem:
            self._import_getitem(location, node)
        elif has_own_form(node) and self._is_extern(node):
            self._multi_result_nodes.add(node)
            for i, value in import_extern(self, location, node, operator_name(operator_of(node))).items():
                self._v[node, i] = value
        elif (known := known_number(node)) is not None:
            with location:
                self._v[node, 0] = self._import_literal(known)
        elif target in ON_NUMBERS:
            self._of_numbers(location, node)
        elif target in fx_importer.SYMBOLIC_TORCH_OPS or (
            fx_importer.is_symbolic(node.meta.get("val")) and fx_importer.is_builtin_function_or_method(target)
        ):
            self._import_symbolic_torch_op(location, node, target)
        elif isinstance(target, torch._ops.OpOverload):
            self._import_torch_op_overload(location, node, _ASSERT if target is _ASSERT else None)
        elif isinstance(target, torch._ops.HigherOrderOperator):
            self._higher_order(location, node)
        else:
            raise NotImplementedError("no operator of the torch dialect")

    def _is_extern(self, node: torch.fx.Node) -> bool:
        return operator_name(operator_of(node)) in self.fx_importer.externs

    def _of_numbers(self, location: ir.Location, node: torch.fx.Node) -> None:
        """An operation on numbers for which the torch dialect has none."""
        with location:
            sizes = [self.resolve_node_value(a) if isinstance(a, torch.fx.Node) else self._import_literal(a) for a in node.args]
        name = {"name": ir.StringAttr.get(f"torch.{_operator_of(node)}")}
        kind = self._cc.value_info_to_type(node.meta["val"])
        op = ir.Operation.create("torch.operator", results=[kind], operands=sizes, attributes=name, loc=location)
        self._v[node, 0] = op.result

    def _higher_order(self, location: ir.Location, node: torch.fx.Node) -> None:
        op = import_higher_order(self, location, node, operator_name(node.target))
        self._multi_result_nodes.add(node)
        for i, value in enumerate(op.results):
            self._v[node, i] = value

    def _placeholder(self, location: ir.Location, node: torch.fx.Node, error: Exception) -> None:
        values = node.meta.get("val")
        several = isinstance(values, tuple | list)
        found = [self._cc.value_info_to_type(v) for v in (values if several else [values]) if v is not None]
        op = ir.Operation.create(
            "torch.operator",
            results=found,
            attributes={
                "name": ir.StringAttr.get(f"torch.{_operator_of(node)}"),
                "relax.reason": ir.StringAttr.get(_first_line(error)),
                **refused_graphs(self, location, node),
            },
            loc=location,
        )
        if several:
            self._multi_result_nodes.add(node)
        for i, value in enumerate(op.results):
            self._v[node, i] = value

    def _bind_shape(self, node: torch.fx.Node) -> None:
        """States the value's shape; a size that is no affine expression becomes a symbol of its own, known only at run time."""
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self._bind_value(node, 0, value)
        elif isinstance(value, tuple | list) and self._is_extern(node):  # sizes of what nobody reads count as well
            for i, part in enumerate(value):
                self._bind_value(node, i, part)

    def _bind_value(self, node: torch.fx.Node, index: int, value: Any) -> None:
        if not isinstance(value, torch.Tensor) or not any(isinstance(d, torch.SymInt) for d in value.shape):
            return
        if (node, index) not in self._v:
            return
        operands: dict[str, ir.Value] = {}
        exprs = [self._affine(d, operands) for d in value.shape]
        ir.Operation.create(
            "torch.bind_symbolic_shape",
            attributes={"shape_expressions": ir.AffineMapAttr.get(ir.AffineMap.get(0, len(operands), exprs))},
            operands=[self.resolve_node_value(node, index), *operands.values()],
        )

    def _affine(self, size: int | torch.SymInt, operands: dict[str, ir.Value]) -> ir.AffineExpr:
        if isinstance(size, int):
            return ir.AffineConstantExpr.get(size)
        try:
            return self._affine_of(size.node.expr, operands)
        except NotImplementedError:
            return self._affine_symbol(self._name_of(size.node.expr), operands)

    def _affine_of(self, expr: sympy.Expr, operands: dict[str, ir.Value]) -> ir.AffineExpr:
        if isinstance(expr, sympy.Symbol):
            return self._affine_symbol(self._cc.symbol_name(expr), operands)
        if isinstance(expr, sympy.Integer):
            return ir.AffineConstantExpr.get(int(expr))
        if isinstance(expr, sympy.Pow) and isinstance(expr.args[1], sympy.Integer) and expr.args[1] > 0:
            return self._folded(ir.AffineMulExpr, [expr.args[0]] * int(expr.args[1]), operands)
        classes = {"Add": ir.AffineAddExpr, "Mul": ir.AffineMulExpr, "FloorDiv": ir.AffineFloorDivExpr,
                   "CleanDiv": ir.AffineFloorDivExpr, "Mod": ir.AffineModExpr, "PythonMod": ir.AffineModExpr}  # fmt: skip
        found = classes.get(type(expr).__name__)
        if type(expr).__name__ in EXTREMES and len(expr.args) == 2:
            return self._affine_symbol(self._extreme(expr), operands)
        if (exact := in_whole_numbers(expr)) is not None:
            return self._affine_of(exact, operands)
        if found is None:
            raise NotImplementedError(str(expr))
        return self._folded(found, list(expr.args), operands)

    def _folded(self, cls: Any, parts: Sequence[Any], operands: dict[str, ir.Value]) -> ir.AffineExpr:
        result = self._affine_of(parts[0], operands)
        for part in parts[1:]:
            result = cls.get(result, self._affine_of(part, operands))
        return result

    def _name_of(self, expr: sympy.Expr) -> str:
        """A symbol for an expression that cannot be written; the same one whenever it comes back."""
        key = f"({expr})"
        if key not in self._symbol_to_value:
            name = f"dim_{len(self._symbol_to_value)}"
            self._symbol_to_value[key] = self._new_symbol(name)
            self._symbol_to_value[name] = self._symbol_to_value[key]
        return ir.StringAttr(self._symbol_to_value[key].owner.attributes["symbol_name"]).value

    def _extreme(self, expr: sympy.Expr) -> str:
        """A symbol for the smaller or the larger one of two sizes, which says so."""
        is_new = f"({expr})" not in self._symbol_to_value
        operands: dict[str, ir.Value] = {}
        sizes = [self._affine_of(a, operands) for a in list[Any](expr.args)]
        name = self._name_of(expr)
        if is_new:
            attributes = self._symbol_to_value[name].owner.attributes
            attributes[EXTREME] = ir.StringAttr.get(type(expr).__name__)
            attributes[SIZES] = ir.AffineMapAttr.get(ir.AffineMap.get(0, len(operands), sizes))
            attributes[SYMBOLS] = ir.ArrayAttr.get([ir.StringAttr.get(n) for n in operands])
        return name

    def _affine_symbol(self, name: str, operands: dict[str, ir.Value]) -> ir.AffineExpr:
        if name not in self._symbol_to_value:
            self._symbol_to_value[name] = self._new_symbol(name)
        operands.setdefault(name, self._symbol_to_value[name])
        return ir.AffineSymbolExpr.get(list(operands).index(name))

    def _new_symbol(self, name: str) -> ir.Value:
        op = ir.Operation.create(
            "torch.symbolic_int",
            attributes={
                "symbol_name": ir.StringAttr.get(name),
                "min_val": self._cc.integer_attr(0, 64),
                "max_val": self._cc.integer_attr(2**63 - 1, 64),
            },
            results=[self._cc.torch_int_type],
        )
        return op.result


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _operator_of(node: torch.fx.Node) -> str:
    """The operator's name; that of the inner one for an operator with effects, which torch wraps."""
    if WRITTEN in node.meta:
        return node.meta[WRITTEN]
    is_wrapped = node.target is torch.ops.higher_order.with_effects
    return operator_name(node.args[1] if is_wrapped else node.target)


def operator_name(target: Any) -> str:
    """``aten.add.Tensor``: the operator's name in the torch dialect."""
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.replace("::", ".") + (f".{n}" if (n := target._schema.overload_name) else "")
    name = target.name() if isinstance(target, torch._ops.HigherOrderOperator) else getattr(target, "__name__", str(target))
    return f"{getattr(target, 'namespace', 'python')}.{name}"
