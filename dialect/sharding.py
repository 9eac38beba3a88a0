"""What a module says of the processes that run it together, and of the weights of which each has a part.

``relax.ranks`` is how many processes there are. ``relax.shards`` says which weights are cut: a weight's own type is then that
of one rank's part::

    module attributes {relax.ranks = 2 : i64, relax.shards = {"q_proj.weight" = array<i64: 0, 64>}} {
      func.func @main(..., %w: tensor<32x64xf32> {relax.name = "q_proj.weight"})

The first number is the axis, the others are sizes of consecutive pieces of it, in the whole weight: each is cut into as many
equal parts as there are ranks, and a rank has its part of each, one behind the other. A projection that stands for several, as
gate and up together, has several pieces. The same program is every rank's; which part is read is decided when weights are
prepared.
"""

from __future__ import annotations

from collections.abc import Mapping

from .bindings import ir
from .cut import Cut
from .errors import RelaxError

__all__ = ["RANKS", "SHARDS", "ranks_of", "set_ranks", "set_shards", "shards_of"]

RANKS = "relax.ranks"
SHARDS = "relax.shards"


def ranks_of(module: ir.Operation) -> int:
    """How many processes run a module. Raises RelaxError when it says no number of them."""
    if RANKS not in module.attributes:
        return 1
    attribute = module.attributes[RANKS]
    if not isinstance(attribute, ir.IntegerAttr) or attribute.value < 1:
        raise RelaxError(f"'builtin.module' op expected {RANKS} such as 2 : i64, got {attribute}", module.location)
    return attribute.value


def shards_of(module: ir.Operation) -> dict[str, Cut]:
    """The weights that are cut, by name.

    Raises:
        RelaxError: ``relax.shards`` is no dictionary of axes and sizes, or a size is no multiple of the number of ranks.
    """
    if SHARDS not in module.attributes:
        return {}
    attribute, ranks = module.attributes[SHARDS], ranks_of(module)
    items = {item.name: item.attr for item in attribute} if isinstance(attribute, ir.DictAttr) else {"": attribute}
    found: dict[str, Cut] = {}
    for name, value in items.items():
        numbers = list(value) if isinstance(value, ir.DenseI64ArrayAttr) else []
        if len(numbers) < 2 or numbers[0] < 0 or any(n < 0 or n % ranks for n in numbers[1:]):
            text = f"expected {SHARDS} such as {{w = array<i64: 0, 64>}}, with sizes that {ranks} ranks share, got {attribute}"
            raise RelaxError(f"'builtin.module' op {text}", module.location)
        found[name] = Cut(numbers[0], tuple(numbers[1:]))
    return found


def set_ranks(module: ir.Operation, ranks: int) -> None:
    """Says how many processes run a module; in place."""
    module.attributes[RANKS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, module.context), ranks)


def set_shards(module: ir.Operation, shards: Mapping[str, Cut]) -> None:
    """Says which weights are cut; in place."""
    values = {name: ir.DenseI64ArrayAttr.get([s.axis, *s.pieces], module.context) for name, s in shards.items()}
    module.attributes[SHARDS] = ir.DictAttr.get(values, context=module.context)
