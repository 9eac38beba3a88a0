"""Converts functions of the torch dialect to relax; every op that has no form there is reported, all of them in one error.

::

    func.func @main(%arg0: !torch.vtensor<[?,64],f32>, %arg1: !torch.vtensor<[8,64],f32> {relax.kind = "param", ...}) {
      %n = torch.symbolic_int "batch" {min_val = 1, max_val = 32} : !torch.int
      torch.bind_symbolic_shape %arg0, [%n], affine_map<()[s0] -> (s0, 64)>
      %0 = torch.aten.linear %arg0, %arg1, %none

    func.func @main(%arg0: tensor<?x64xf32, {sym = ["batch"]}>, %arg1: tensor<8x64xf32> {relax.kind = "param", ...})
        attributes {relax.num_input = 1, relax.symbol_ranges = {batch = [1, 32]}} {
      %0 = "relax.permute_dims"(%arg1) {axes = array<i64: 1, 0>}
      %1 = "relax.matmul"(%arg0, %0)

An op that the map lacks becomes a call, see :mod:`.torch_outline`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dialect.bindings import func, ir
from ..dialect.call_graph import unreferenced_private_functions
from ..dialect.conventions import SYMBOL_RANGES
from ..dialect.errors import RelaxError
from ..dialect.functions import KEYWORD, NAME, NUM_INPUT, STATE, body_of, functions, name_of, set_num_input, update_type
from ..dialect.struct_info import TensorInfo, same_info
from ..dialect.symbolic import Dim, Expr
from . import torch_ops
from .custom_operators import extern_operators
from .emit import expand, full, info_of, match
from .torch_extern import call_extern
from .torch_guard_checks import emit_guards
from .torch_guards import GUARDS
from .torch_op import HANDLERS, TorchOp, UnmappedError
from .torch_outline import Outliner, UntrustedError
from .torch_report import ImportReport
from .torch_subgraphs import GRAPH, GRAPHS
from .torch_types import is_number, is_tensor_list, tensor_shape
from .torch_values import ALIKE, KIND, SYMBOL, Values, number_dtype, op_key

__all__ = ["convert_modules"]

torch_ops.load()

#: What ends a use of an operator that its handler did not think of, symbolic sizes for example; Python's words say nothing.
_PYTHON_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
_UNFORESEEN = "no relax form of these operands"

#: Why the importer could not take an operator, of which it then shows no operands.
_REASON = "relax.reason"

_WEIGHTS = ("param", "buffer", "constant")
_Bound = ir.Value | list[ir.Value | None] | None


class _ReportedError(RelaxError):
    """An operator cannot be imported as its graphs cannot, of which the report has what."""

    def __init__(self) -> None:
        super().__init__("expected operators that have a relax form in its graphs")


def convert_modules(sources: Sequence[ir.Module]) -> ir.Module:
    """The functions of torch-dialect modules of one context as one relax module there.

    Argument attributes ``relax.name`` and ``relax.kind`` are kept; weights that nothing reads are left out.

    Raises:
        UnsupportedError: listing every operator that has no relax form, with count, reason, source lines and module paths.
        RelaxError: an argument or result is no tensor of real numbers.
    """
    report = ImportReport()
    with sources[0].context, sources[0].operation.location:
        result = ir.Module.create()
        outliner = Outliner(result)
        for source in sources:
            graphs = {name_of(f): f for f in functions(source) if GRAPH in f.attributes}
            for function in (f for f in functions(source) if GRAPH not in f.attributes):
                with ir.InsertionPoint(result.body):
                    _Function(function, graphs, report, outliner).convert()
        report.raise_if_any()
        for function in unreferenced_private_functions(result.operation):
            function.operation.erase()
    return result


class _Function:
    """Converts one function; an op that cannot be is reported and a stand-in of its type lets conversion go on."""

    def __init__(
        self, source: func.FuncOp, graphs: Mapping[str, func.FuncOp], report: ImportReport, outliner: Outliner
    ):  # fmt: skip
        block = body_of(source)
        if block is None:
            raise RelaxError(f"expected a function with a body, got the declaration @{name_of(source)}", source.location)
        self.source = source
        self.graphs = graphs
        self.arguments = list(block.arguments)
        self.operations = [op.operation for op in block.operations]
        self.attributes = _dictionaries(source, len(self.arguments), "arg_attrs")
        self.states = [_name_of_state(a) for a in _dictionaries(source, len(source.type.results), "res_attrs")]
        self.report = report
        self.outliner = outliner
        self.externs = extern_operators()
        self.values = Values(self._inlined)
        self.unusable: set[ir.Value] = set()
        self.entered: set[str] = set()

    def convert(self) -> None:
        for op in self.operations:
            self._note_shape(op)
        target = func.FuncOp(name_of(self.source), ([], []), loc=self.source.location)
        with self.source.location:
            types = [self._argument_type(i) for i in range(len(self.arguments))]
            block = ir.Block.create_at_start(target.regions[0], types)
        self._bind_arguments(block)
        with ir.InsertionPoint(block):
            self._check_guards(block)
            for op in self.operations:
                self._convert(op)
        _drop_unused(block)
        kept = self._drop_unused_weights(block)
        update_type(target)
        self._describe(target, kept)

    def _check_guards(self, block: ir.Block) -> None:
        if GUARDS not in self.source.attributes:
            return
        pairs = [[ir.StringAttr(text).value for text in ir.ArrayAttr(pair)] for pair in self.source.attributes[GUARDS]]
        with self.source.location:
            emit_guards([(shown, code) for shown, code in pairs], list(block.arguments))

    def _inlined(self, name: str, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """The results of a graph of a higher-order operator, converted where the insertion point is."""
        block = self._enter(name)
        for old, new in zip(block.arguments, arguments, strict=True):
            declared = self.values.declared(old)
            self.values.tensors[old] = new if declared is None else _as_declared(new, declared, self.values)
        *operations, end = [op.operation for op in block.operations]
        for op in operations:
            self._convert(op)
        if not self.unusable.isdisjoint(end.operands):
            raise _ReportedError
        return [self._returned(v) for v in end.operands]

    def _enter(self, name: str) -> ir.Block:
        """The block of a graph of a higher-order operator, once its shapes are noted."""
        self.entered.add(name)
        block = body_of(self.graphs[name])
        assert block is not None
        for op in block.operations:
            self._note_shape(op.operation)
        return block

    def _look_into_graphs(self, op: ir.Operation) -> None:
        """Converts what was not yet of the graphs of an operator that cannot be imported, for what is to be said of them."""
        graphs = ir.ArrayAttr(op.attributes[GRAPHS]) if GRAPHS in op.attributes else []
        for name in [ir.StringAttr(g).value for g in graphs]:
            if name in self.entered:
                continue
            block = self._enter(name)
            for argument in block.arguments:
                self._bind(argument, self._stand_in(argument))
            for inner in [op.operation for op in block.operations][:-1]:
                self._convert(inner)

    def _note_shape(self, op: ir.Operation) -> None:
        if op.name == "torch.symbolic_int":
            self.values.bind_symbol(op)
        elif op.name == "torch.bind_symbolic_shape":
            self.values.bind_shape(op)
        elif SYMBOL in op.attributes:
            self.values.elements[ir.StringAttr(op.attributes[SYMBOL]).value] = op.results[0]

    def _argument_type(self, index: int) -> ir.Type:
        argument = self.arguments[index]
        name = self.attributes[index].get(NAME)
        what = f"argument '{ir.StringAttr(name).value}'" if name else f"argument {index}"
        shape = tensor_shape(argument.type)
        if shape is None:
            got = "a sparse one" if "sparse_tensor" in str(argument.type) else argument.type
            raise RelaxError(f"{what}: expected a dense tensor, got {got}", self.source.location)
        try:
            info = self.values.declared(argument)
            assert info is not None
            return info.type
        except RelaxError as error:
            self.report.add(what, error.args[0], self._first_use(argument))
            self.unusable.add(argument)
            return TensorInfo(self.values.shapes.get(argument, shape), ir.F32Type.get()).type

    def _first_use(self, argument: ir.Value) -> ir.Location:
        """Where the first operator reads an argument; arguments have no line of their own."""
        users = {use.owner.operation for use in argument.uses}
        found = next((op for op in self.operations if op in users and op.name != "torch.bind_symbolic_shape"), None)
        return self.source.location if found is None else found.location

    def _bind_arguments(self, block: ir.Block) -> None:
        for old, new, attributes in zip(self.arguments, block.arguments, self.attributes, strict=True):
            self.values.tensors[old] = new
            self.values.defined |= {n for d in info_of(new).shape if isinstance(d, Expr) for n in d.names}
            if _is_weight(attributes):
                self.values.weights.add(new)
            if ALIKE in attributes:
                self.values.alike[new] = ir.IntegerAttr(attributes.pop(ALIKE)).value

    def _convert(self, op: ir.Operation) -> None:
        with op.location:
            if op.name == "func.return":
                func.ReturnOp([self._result(i, self._returned(v)) for i, v in enumerate(op.operands)])
            elif not _is_only_for_import(op):
                self._convert_op(op)

    def _convert_op(self, op: ir.Operation) -> None:
        if not self.unusable.isdisjoint(op.operands):
            self.unusable.update(op.results)
            self._look_into_graphs(op)
            return
        try:
            results = self._handled(op)
        except _ReportedError:
            self._look_into_graphs(op)
            results = [self._stand_in(r) for r in op.results]
        except (RelaxError, *_PYTHON_ERRORS) as error:
            reason = error.args[0] if isinstance(error, RelaxError) else _UNFORESEEN
            self.report.add(op_key(op), reason, op.location)
            self._look_into_graphs(op)
            results = [self._stand_in(r) for r in op.results]
        for torch_value, value in zip(op.results, results, strict=True):
            self._bind(torch_value, value)

    def _handled(self, op: ir.Operation) -> list[_Bound]:
        torch_op = TorchOp(op, self.values)
        try:
            found = self._mapped(torch_op)
        except UnmappedError as error:
            found = self._outlined(torch_op, error)
        values: list[ir.Value | None] = [found] if isinstance(found, ir.Value) else list(found)
        if len(op.results) == 1 and is_tensor_list(op.results[0].type):
            return [values]
        return [self._checked(torch_op, i, v) for i, v in enumerate(values)]

    def _mapped(self, op: TorchOp) -> ir.Value | Sequence[ir.Value | None]:
        if op.key in self.externs and _REASON not in op.op.attributes:
            return call_extern(op, self.externs[op.key])
        handler = HANDLERS.get(op.key)
        if handler is None or _REASON in op.op.attributes:
            raise UnmappedError(_reason(op.op))
        try:
            return handler(op)
        except _PYTHON_ERRORS as error:
            raise UnmappedError(_UNFORESEEN) from error

    def _outlined(self, op: TorchOp, unmapped: UnmappedError) -> list[ir.Value]:
        """What torch-mlir makes of an op; where it has nothing, the reason is why the map has nothing either."""
        try:
            found = self.outliner.call(op)
        except UntrustedError:
            if op.key in HANDLERS:
                raise unmapped from None
            raise
        if found is None:
            raise unmapped
        return found

    def _checked(self, op: TorchOp, index: int, value: ir.Value | None) -> ir.Value | None:
        declared = op.results[index]
        if value is not None and declared is not None:
            return _as_declared(value, declared, self.values)
        if op.is_used(index):
            raise RelaxError(f"expected result {index} to be unused, it has no relax form")
        self.unusable.add(op.op.results[index])
        return None

    def _stand_in(self, result: ir.Value) -> _Bound:
        if is_tensor_list(result.type):
            self.unusable.add(result)
            return None
        try:
            declared = self.values.declared(result)
        except RelaxError:
            declared = None
        if declared is None:
            self.unusable.add(result)
            return None
        return ir.Operation.create("builtin.unrealized_conversion_cast", results=[declared.type]).results[0]

    def _bind(self, torch_value: ir.Value, value: _Bound) -> None:
        if isinstance(value, list):
            self.values.lists[torch_value] = value
        elif value is not None:
            self.values.tensors[torch_value] = value

    def _result(self, index: int, value: ir.Value) -> ir.Value:
        """What becomes of state has its sizes: torch leaves it out that it copies a number, or a row, to all of it."""
        name = self.states[index] if index < len(self.states) else None
        if name is None:
            return value
        kept = next(old for old, a in zip(self.arguments, self.attributes, strict=True) if _name_of_state(a) == name)
        return expand(value, info_of(self.values.tensors[kept]).shape)

    def _returned(self, value: ir.Value) -> ir.Value:
        """A tensor, or a number as a tensor without dimensions."""
        if value in self.values.tensors:
            return self.values.tensors[value]
        try:
            if self.values.is_from_data(value):
                return self.values.element(value)
            number = self.values.number(value)
            return full(number, number_dtype(number))
        except RelaxError as error:
            self.report.raise_if_any()
            raise RelaxError(f"cannot return a {value.type}: {error.args[0]}", self.source.location) from None

    def _drop_unused_weights(self, block: ir.Block) -> list[dict[str, ir.Attribute]]:
        """Erases arguments that are weights and not used; the attributes of those that stay."""
        kept: list[dict[str, ir.Attribute]] = []
        for i in reversed(range(len(self.attributes))):
            if _is_weight(self.attributes[i]) and not _is_used(block.arguments[i]):
                block.erase_argument(i)
            else:
                kept.append(self.attributes[i])
        return kept[::-1]

    def _describe(self, target: func.FuncOp, arguments: list[dict[str, ir.Attribute]]) -> None:
        target.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in arguments])
        if "res_attrs" in self.source.attributes:
            target.attributes["res_attrs"] = self.source.attributes["res_attrs"]
        for attribute in (STATE, KEYWORD):
            if attribute in self.source.attributes:
                target.attributes[attribute] = self.source.attributes[attribute]
        if NUM_INPUT in self.source.attributes or any(KIND in a for a in arguments):
            set_num_input(target, sum(not _is_weight(a) for a in arguments))
        ranges = self._ranges(target)
        if ranges:
            target.attributes[SYMBOL_RANGES] = ir.DictAttr.get(ranges)

    def _ranges(self, target: func.FuncOp) -> dict[str, ir.Attribute]:
        block = body_of(target)
        dims = [d for a in block.arguments for d in info_of(a).shape if isinstance(d, Expr)] if block else []
        names = {name for d in dims for name in d.names} & self.values.ranges.keys()
        i64 = ir.IntegerType.get_signless(64)
        return {
            name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, v) for v in self.values.ranges[name] if v is not None])
            for name in sorted(names)
        }


def _is_only_for_import(op: ir.Operation) -> bool:
    """Whether the op makes only numbers and lists, which are read when an op needs them, or says something about shapes."""
    if op.name in ("torch.symbolic_int", "torch.bind_symbolic_shape", "torch.prim.ListConstruct"):
        return True
    return len(op.results) > 0 and all(is_number(r.type) for r in op.results)


def _as_declared(value: ir.Value, declared: TensorInfo, values: Values) -> ir.Value:
    """The value under torch's type: where only torch knows a size, or writes it in another way, a match_cast says so."""
    info = info_of(value)
    constant = [info.with_(shape=[d if isinstance(d, int) else None for d in i.shape]) for i in (info, declared)]
    if info.dtype != declared.dtype or not same_info(*constant):
        raise RelaxError(f"expected a result of {declared}, got {info}")
    shape = [_more_exact(a, b) for a, b in zip(info.shape, declared.shape, strict=True)]
    if list(info.shape) == shape:
        return value
    values.define(shape)
    return match(value, info.with_(shape=shape))


def _more_exact(inferred: Dim, declared: Dim) -> Dim:
    return inferred if declared is None or isinstance(inferred, int) else declared


def _reason(op: ir.Operation) -> str:
    """Why an op has no handler: what the importer noted, if it was the importer that could not take it."""
    return ir.StringAttr(op.attributes[_REASON]).value if _REASON in op.attributes else "no relax form"


def _is_used(value: ir.Value) -> bool:
    return any(True for _ in value.uses)


def _drop_unused(block: ir.Block) -> None:
    """Erases what nothing uses: all ops made here are pure."""
    for op in reversed([op.operation for op in block.operations]):
        if len(op.results) and not any(_is_used(r) for r in op.results):
            op.erase()


def _dictionaries(function: func.FuncOp, count: int, which: str) -> list[dict[str, ir.Attribute]]:
    if which not in function.attributes:
        return [{} for _ in range(count)]
    return [{e.name: e.attr for e in ir.DictAttr(item)} for item in ir.ArrayAttr(function.attributes[which])]


def _name_of_state(attributes: dict[str, ir.Attribute]) -> str | None:
    is_state = KIND in attributes and ir.StringAttr(attributes[KIND]).value == "state"
    return ir.StringAttr(attributes[NAME]).value if is_state else None


def _is_weight(attributes: dict[str, ir.Attribute]) -> bool:
    return KIND in attributes and ir.StringAttr(attributes[KIND]).value in _WEIGHTS
