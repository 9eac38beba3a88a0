"""Small faults in Python sources: a comparison turned round, a condition negated, a number off by one, a statement left out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Mutation", "mutations"]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
}  # fmt: skip
_FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min"}


@dataclass(frozen=True)
class Mutation:
    """One fault.

    Attributes:
        line: where it is, from 1 on.
        kind: what it does.
        text: the whole source with it.
    """

    line: int
    kind: str
    text: str


def mutations(source: str) -> Iterator[Mutation]:
    """All faults of a source, one at a time. Annotations, docstrings, messages of errors and imports have none."""
    count = sum(1 for _ in _places(ast.parse(source)))
    for i in range(count):
        tree = ast.parse(source)
        node, kind, change = list(_places(tree))[i]
        change()
        yield Mutation(getattr(node, "lineno", 0), kind, ast.unparse(ast.fix_missing_locations(tree)))


_Place = tuple[ast.AST, str, Callable[[], None]]


def _places(tree: ast.AST) -> Iterator[_Place]:
    """Where a fault can be put, and what puts it there."""
    for node in _reached(tree):
        yield from _in_expression(node)
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node, "condition negated", lambda node=node: _negate(node)
        for body in (getattr(node, name, None) for name in ("body", "orelse")):
            for i, statement in enumerate(body if isinstance(body, list) else ()):
                if _may_go(statement):
                    yield statement, "statement left out", lambda body=body, i=i: body.__setitem__(i, ast.Pass())


def _in_expression(node: ast.AST) -> Iterator[_Place]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        other = _COMPARISONS[type(node.ops[0])]
        yield node, f"{type(node.ops[0]).__name__} as {other.__name__}", lambda: node.ops.__setitem__(0, other())
    elif isinstance(node, ast.BoolOp):
        yield node, "and as or, or as and", lambda: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "not left out", lambda: _drop_not(node)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and not _is_text(node):
        other_ = _OPERATORS[type(node.op)]
        yield node, f"{type(node.op).__name__} as {other_.__name__}", lambda: setattr(node, "op", other_())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, "the other truth value", lambda: setattr(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, "a number one more", lambda: setattr(node, "value", node.value + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        yield node, f"{node.func.id} as {_FUNCTIONS[node.func.id]}", lambda: setattr(node.func, "id", _FUNCTIONS[node.func.id])


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes whose change can change what is computed."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases") or isinstance(
            node, ast.Raise | ast.Import | ast.ImportFrom
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _reached(child)


def _may_go(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    return isinstance(statement, ast.Raise | ast.Continue | ast.AugAssign)


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right))


def _negate(node: ast.If | ast.IfExp | ast.While) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _drop_not(node: ast.UnaryOp) -> None:
    node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
