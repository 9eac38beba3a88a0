"""A module as text made for reading, not for parsing: names, shapes and attributes without MLIR's type noise.

    func @main(%x: f32[n, 64], *, %fc.weight: f32[64, 64]) -> (f32[n, 64]) {
      %0: f32[64, 64] = permute_dims(%fc.weight, axes=[1, 0])
      %1: f32[n, 64] = matmul(%x, %0)
      return %1
    }

``*`` stands between what each call gives and the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .dialect.bindings import func, ir
from .dialect.functions import (
    argument_names,
    body_of,
    full_argument_names,
    functions,
    is_private,
    name_of,
    num_input,
    transform_for,
)
from .dialect.printable import joined_lines
from .dialect.struct_info import TensorInfo, is_tensor
from .dialect.symbolic import dim_text
from .dialect.traversal import Nested, run_nested

__all__ = ["script"]

#: Longest attribute text that is shown whole.
_MAX_ATTRIBUTE = 60
#: Longest first line of a function; a longer one has an argument per line.
_MAX_HEADER = 120
#: Most elements of a constant that are shown; of a larger one the type says enough.
_MAX_ELEMENTS = 8
_FLOAT = re.compile(r"-?\d+\.\d+[eE][-+]?\d+")
_HIDDEN = ("operandSegmentSizes", "resultSegmentSizes", "operand_segment_sizes")


def script(module: ir.Module | ir.Operation) -> str:
    """The readable text of a module; functions in order, one line per op, cost linear in the number of ops."""
    return "\n\n".join(joined_lines(_function(f)) for f in functions(module))


def _function(function: func.FuncOp) -> Iterator[str]:
    body = body_of(function)
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    results = f"({', '.join(map(_type, signature.results))})"
    if body is None:
        yield f"extern func @{name_of(function)}({', '.join(map(_type, signature.inputs))}) -> {results}"
        return
    names = _Names()
    given, full = argument_names(function), full_argument_names(function)
    wanted = [n or _name_in_location(a.location) or m for a, n, m in zip(body.arguments, given, full, strict=True)]
    arguments = [f"{names.of(a, n)}: {_type(a.type)}" for a, n in zip(body.arguments, wanted, strict=True)]
    split = num_input(function)
    if split is not None and split < len(arguments):
        arguments.insert(split, "*")
    prepares = transform_for(function)
    note = f"  // prepares the weights of @{prepares}" if prepares else ""
    visibility = "private " if is_private(function) else ""
    header = f"{visibility}func @{name_of(function)}({', '.join(arguments)}) -> {results} {{{note}"
    if len(header) <= _MAX_HEADER:
        yield header
    else:
        yield f"{visibility}func @{name_of(function)}("
        yield from (f"    {argument}," for argument in arguments)
        yield f") -> {results} {{{note}"
    lines: list[str] = []
    run_nested(_block(body, names, "  ", lines))
    yield from lines
    yield "}"


class _Names:
    """A distinct, readable name for each value of a function."""

    def __init__(self) -> None:
        self._names: dict[ir.Value, str] = {}
        self._used: set[str] = set()
        self._count = 0

    def of(self, value: ir.Value, wanted: str | None = None) -> str:
        if value not in self._names:
            self._names[value] = self._fresh(wanted or _name_in_location(value.location))
        return f"%{self._names[value]}"

    def _fresh(self, wanted: str | None) -> str:
        base = re.sub(r"[^\w.$-]", "_", wanted or "")
        name = base
        while not name or name in self._used:
            name = f"{base}_{self._count}" if base else str(self._count)
            self._count += 1
        self._used.add(name)
        return name


def _name_in_location(location: ir.Location) -> str | None:
    match = re.match(r'loc\("([^"]+)"(?!:)', str(location)) if isinstance(location, ir.NameLoc) else None
    return match.group(1) if match else None


def _block(block: ir.Block, names: _Names, indent: str, lines: list[str]) -> Nested:
    for op in block.operations:
        bodies = [r for r in op.operation.regions if len(r.blocks)]
        lines.append(_operation(op.operation, names, indent) + " {" * bool(bodies))
        for i, region in enumerate(bodies):
            lines += [indent + "} else {"] * bool(i)
            for inner in region.blocks:
                if len(inner.arguments):
                    lines.append(f"{indent}  given {', '.join(f'{names.of(a)}: {_type(a.type)}' for a in inner.arguments)}:")
                yield _block(inner, names, indent + "  ", lines)
        lines += [indent + "}"] * bool(bodies)


def _operation(op: ir.Operation, names: _Names, indent: str) -> str:
    """The line of an op, without its regions."""
    short = op.name.removeprefix("relax.")
    operands = [names.of(v) for v in op.operands]
    if short in ("func.return", "scf.yield"):
        return f"{indent}{short.split('.')[1]} {', '.join(operands)}".rstrip()
    if short == "func.call":
        short = str(op.attributes["callee"])
    shown = [*operands, *(f"{key}={_attribute(op.attributes[key])}" for key in _shown_keys(op))]
    results = ", ".join(f"{names.of(r)}: {_type(r.type)}" for r in op.results)
    return f"{indent}{results + ' = ' if results else ''}{short}({', '.join(shown)})"


def _shown_keys(op: ir.Operation) -> Iterable[str]:
    keys = (item if isinstance(item, str) else item.name for item in op.attributes)
    return (k for k in keys if k not in _HIDDEN and not (k == "callee" and op.name == "func.call"))


def _attribute(attribute: ir.Attribute) -> str:
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return str(list(attribute))
    if isinstance(attribute, ir.StringAttr):
        return f'"{attribute.value}"'
    if isinstance(attribute, ir.ArrayAttr):
        return f"[{', '.join(a.value if isinstance(a, ir.StringAttr) else _attribute(a) for a in attribute)}]"
    if isinstance(attribute, ir.BoolAttr):
        return str(attribute)
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr):
        return str(attribute.value)
    if isinstance(attribute, ir.DenseElementsAttr):
        return _elements(attribute)
    return _cut(str(attribute).rsplit(" : ", 1)[0])


def _elements(attribute: ir.DenseElementsAttr) -> str:
    if len(attribute) > _MAX_ELEMENTS and not attribute.is_splat:
        return "..."
    text = str(attribute).rsplit(" : ", 1)[0].removeprefix("dense<").removesuffix(">")
    return _FLOAT.sub(lambda found: str(float(found.group())), text)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_ATTRIBUTE else f"{text[:_MAX_ATTRIBUTE]}..."


def _type(type_: ir.Type) -> str:
    if not is_tensor(type_):
        return str(type_).removeprefix("!relax.")
    info = TensorInfo.of(type_)
    device = f" on {info.vdevice}" if info.vdevice else ""
    return f"{info.dtype}[{', '.join(dim_text(d) for d in info.shape)}]{device}"
