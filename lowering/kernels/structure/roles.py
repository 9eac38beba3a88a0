"""What the inputs of a product of integers are in the loops of its kernel, by the mark that names their roles.

What an input is turned into in the body, alone or with others of its role, is a part of the kernel's computation; where parts
meet, the kernel has instructions of its own.
"""

from __future__ import annotations

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ...integer_product import IntegerProduct
from .factor import Factor
from .nest import Nest, Operand

__all__ = ["OF_COLUMNS", "OF_ROWS", "Roles"]

OF_ROWS = ("x", "x_scale", "x_sum")
OF_COLUMNS = ("weight", "scale", "zero")


class Roles:
    """The inputs of a marked nest by role."""

    def __init__(self, nest: Nest, product: IntegerProduct):
        self.nest, self.product = nest, product
        self.operations = nest.body()[0]
        #: Of each value of the body, the roles of what it is computed from.
        self.of_value: dict[ir.Value, set[str]] = {}
        for operand, role in zip(nest.inputs, product.roles, strict=True):
            self.of_value[operand.argument] = {role}
        for operand in nest.outputs:
            self.of_value[operand.argument] = {"result"}
        for op in self.operations:
            self.of_value[op.results[0]] = set().union(*(self.of_value.get(v, set()) for v in op.operands))

    def operands(self, *roles: str) -> tuple[Operand, ...]:
        """The inputs of some roles."""
        return tuple(o for o, role in zip(self.nest.inputs, self.product.roles, strict=True) if role in roles)

    def operand(self, role: str) -> Operand | None:
        """The only input of a role, None where there is none."""
        return next(iter(self.operands(role)), None)

    def role_of(self, operand: Operand) -> str:
        """Who an input is."""
        return self.product.roles[self.nest.inputs.index(operand)]

    def factor(self, *roles: str) -> Factor:
        """What is computed from inputs of some roles alone, the first of these its value."""
        return Factor(self.value(roles[0]), self.operands(*roles), self._computed(*roles))

    def part(self, role: str) -> Factor:
        """What is computed from the inputs of a role alone, and meets others."""
        value = self.value(role)
        return Factor(value, self.operands(role), self._computed(role))

    def value(self, role: str) -> ir.Value:
        """What others meet of a role. Raises RelaxError where that is not one value."""
        own = [v for v, roles in self.of_value.items() if roles == {role}]
        found = [v for v in own if any(self._is_met(use.owner, role) for use in v.uses)]
        if len(found) != 1:
            location = self.nest.operation.location
            raise RelaxError(f"expected the body to use one value that is computed from {role}, got {len(found)}", location)
        return found[0]

    def _is_met(self, user: ir.Operation | ir.OpView, role: str) -> bool:
        op = user.operation
        return len(op.results) == 0 or self.of_value[op.results[0]] != {role}

    def _computed(self, *roles: str) -> tuple[ir.Operation, ...]:
        """The operations on inputs of some roles alone, and on numbers that these need."""
        wanted, found = set[ir.Value](), list[ir.Operation]()
        for op in reversed(self.operations):
            own = self.of_value[op.results[0]]
            if (own and own <= set(roles)) or op.results[0] in wanted:
                found.append(op)
                wanted.update(op.operands)
        return tuple(reversed(found))
