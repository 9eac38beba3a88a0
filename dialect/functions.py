"""Reading and changing ``func.func`` under our conventions.

A public function with ``relax.num_input = k`` takes ``k`` run-time inputs, then weights. Arguments and results are named by
the attribute ``relax.name``; one without it goes by its kind and position everywhere: ``input0``, ``weight3``, ``output1``.
``relax.state = {cache = dense<0.0> : tensor<..>}`` names inputs that are state, with their first values: the result of the
same name is the next value. ``relax.keyword = ["mask"]`` names the inputs that calls from Python have to name, the last ones.
``relax.c_prefix = "encoder"`` on the module is how the C names of its functions begin. ``relax.transform_for = @main`` marks
the function that prepares the weights of ``@main``; a list of functions, one that prepares the weights of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .bindings import func, ir
from .errors import RelaxError

__all__ = [
    "C_PREFIX", "KEYWORD", "NAME", "NUM_INPUT", "STATE", "TRANSFORM_FOR", "argument_names", "body_of", "completed",
    "find_function", "full_argument_names", "functions", "initial_state", "is_private", "keyword_inputs", "name_of",
    "num_input", "result_names", "returned_values", "set_names", "set_num_input", "terminator", "transform_for",
    "transform_targets", "update_type",
]  # fmt: skip

NUM_INPUT = "relax.num_input"
NAME = "relax.name"
STATE = "relax.state"
KEYWORD = "relax.keyword"
C_PREFIX = "relax.c_prefix"
TRANSFORM_FOR = "relax.transform_for"


def functions(module: ir.Operation | ir.Module) -> list[func.FuncOp]:
    """The functions of a module, in order."""
    block = module.body if isinstance(module, ir.Module) else module.regions[0].blocks[0]
    return [op for op in block.operations if isinstance(op, func.FuncOp)]


def find_function(module: ir.Operation | ir.Module, name: str) -> func.FuncOp:
    """The function of that name. Raises RelaxError naming those that exist."""
    # MLIR's table is made in 5 us for 150 functions, a list of them here in 220: the interpreter asks in every call.
    table = ir.SymbolTable(module.operation)
    if name in table and isinstance(found := table[name], func.FuncOp):
        return found
    names = ", ".join(f"@{name_of(f)}" for f in functions(module))
    raise RelaxError(f"expected one of the functions {names or '(none)'}, got @{name}")


def name_of(function: func.FuncOp) -> str:
    """The function's symbol, without ``@``."""
    return ir.StringAttr(function.attributes["sym_name"]).value


def is_private(function: func.FuncOp) -> bool:
    """Whether only this module can refer to the function."""
    attributes = function.attributes
    return "sym_visibility" in attributes and ir.StringAttr(attributes["sym_visibility"]).value == "private"


def body_of(function: func.FuncOp) -> ir.Block | None:
    """The entry block, None for a declaration."""
    blocks = function.regions[0].blocks
    return blocks[0] if len(blocks) else None


def terminator(block: ir.Block) -> ir.Operation:
    """The last operation of a block."""
    return block.operations[-1].operation


def returned_values(function: func.FuncOp) -> list[ir.Value]:
    """The operands of the function's return; of several blocks, the first that returns."""
    block = body_of(function)
    if block is None:
        raise RelaxError(f"expected a function with a body, got the declaration @{name_of(function)}", function.location)
    ends = [terminator(b) for b in function.regions[0].blocks]
    return list(next((end for end in ends if end.name == "func.return"), ends[0]).operands)


def num_input(function: func.FuncOp) -> int | None:
    """How many leading arguments are run-time inputs; None when the function does not say.

    Raises:
        RelaxError: the attribute is no integer between 0 and the number of arguments.
    """
    if NUM_INPUT not in function.attributes:
        return None
    attribute = function.attributes[NUM_INPUT]
    count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
    value = attribute.value if isinstance(attribute, ir.IntegerAttr) else None
    if value is None or not 0 <= value <= count:
        raise RelaxError(f"'func.func' op expected {NUM_INPUT} between 0 and {count}, got {attribute}", function.location)
    return value


def set_num_input(function: func.FuncOp, count: int) -> None:
    """Says that the first ``count`` arguments are run-time inputs, the others weights."""
    function.attributes[NUM_INPUT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)


def initial_state(function: func.FuncOp) -> dict[str, ir.DenseElementsAttr]:
    """The function's state by the name of argument and result, each with its first value; empty when it has none.

    Raises:
        RelaxError: ``relax.state`` is no dictionary of dense tensors.
    """
    if STATE not in function.attributes:
        return {}
    attribute = function.attributes[STATE]
    items = {item.name: item.attr for item in attribute} if isinstance(attribute, ir.DictAttr) else {"": attribute}
    found = {name: value for name, value in items.items() if isinstance(value, ir.DenseElementsAttr)}
    if len(found) < len(items):
        raise RelaxError(f"'func.func' op expected {STATE} such as {{cache = dense<0.0> : tensor<8xf32>}}, got {attribute}",
                         function.location)  # fmt: skip
    return found


def keyword_inputs(function: func.FuncOp) -> tuple[str, ...]:
    """The inputs that calls have to name, as an exported program does those that it got by keyword.

    Raises:
        RelaxError: ``relax.keyword`` is no list of names of inputs, or others, but state, follow them.
    """
    if KEYWORD not in function.attributes:
        return ()
    attribute, state = function.attributes[KEYWORD], initial_state(function)
    items = list(attribute) if isinstance(attribute, ir.ArrayAttr) else [attribute]
    names = [item.value for item in items if isinstance(item, ir.StringAttr)]
    inputs = [n for n in full_argument_names(function)[: num_input(function)] if n not in state]
    if len(names) < len(items) or inputs[len(inputs) - len(names) :] != names:
        raise RelaxError(f"expected the names of the last inputs for {KEYWORD}, got {attribute}", function.location)
    return tuple(names)


def transform_for(function: func.FuncOp) -> str | None:
    """The function whose weights this one prepares, the first of several, or None."""
    return next(iter(transform_targets(function)), None)


def transform_targets(function: func.FuncOp) -> list[str]:
    """The functions whose weights this one prepares; empty for one that is no transform function.

    Raises:
        RelaxError: ``relax.transform_for`` is neither a function nor a list of functions.
    """
    if TRANSFORM_FOR not in function.attributes:
        return []
    attribute = function.attributes[TRANSFORM_FOR]
    items = list(attribute) if isinstance(attribute, ir.ArrayAttr) else [attribute]
    if not items or not all(isinstance(item, ir.FlatSymbolRefAttr) for item in items):
        raise RelaxError(f"'func.func' op expected a function, or a list of them, for {TRANSFORM_FOR}, got {attribute}",
                         function.location)  # fmt: skip
    return [item.value for item in items]


def argument_names(function: func.FuncOp) -> list[str | None]:
    """The ``relax.name`` of each argument, None where it has none."""
    count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
    return list(_names(function, "arg_attrs", count))


def result_names(function: func.FuncOp) -> list[str | None]:
    """The ``relax.name`` of each result, None where it has none."""
    count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)
    return list(_names(function, "res_attrs", count))


def full_argument_names(function: func.FuncOp) -> list[str]:
    """What each argument is called: its ``relax.name``, else ``input0`` or ``weight3``, the number being its position."""
    given, inputs = argument_names(function), num_input(function)
    return completed(given, ["input" if inputs is None or i < inputs else "weight" for i in range(len(given))])


def completed(given: Sequence[str | None], kinds: Sequence[str]) -> list[str]:
    """Names for all: where none is given, the kind and the position; underscores follow one that is given to another."""
    taken, found = {n for n in given if n is not None}, list[str]()
    for position, (name, kind) in enumerate(zip(given, kinds, strict=True)):
        candidate = name or f"{kind}{position}"
        while name is None and candidate in taken:
            candidate += "_"
        found.append(candidate)
    return found


def set_names(function: func.FuncOp, arguments: Sequence[str | None], results: Sequence[str | None] | None = None) -> None:
    """Names every argument, and every result when given; other argument and result attributes are dropped."""
    _set_names(function, "arg_attrs", arguments)
    if results is not None:
        _set_names(function, "res_attrs", results)


def update_type(function: func.FuncOp) -> None:
    """Makes the function type agree with the entry block's arguments and the return's operands."""
    block = body_of(function)
    if block is not None:
        types = ([a.type for a in block.arguments], [v.type for v in returned_values(function)])
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


def _names(function: func.FuncOp, key: str, count: int) -> Iterator[str | None]:
    if key not in function.attributes:
        yield from [None] * count
        return
    for item in ir.ArrayAttr(function.attributes[key]):
        entries = ir.DictAttr(item)
        yield ir.StringAttr(entries[NAME]).value if NAME in entries else None


def _set_names(function: func.FuncOp, key: str, names: Sequence[str | None]) -> None:
    if not any(names):
        if key in function.attributes:
            del function.attributes[key]
        return
    items = [ir.DictAttr.get({} if n is None else {NAME: ir.StringAttr.get(n)}) for n in names]
    function.attributes[key] = ir.ArrayAttr.get(items)
