"""Writes down what code is for, so that every later step finds it in the module.

With ``target=cpu:x86-64-v3``. Before::

    module {

after (shortened)::

    module attributes {relax.target = {cpu = "x86-64-v3", features = "+avx2,+fma", openmp = false, tile_rows = 6 : i64,
                                       triple = "x86_64-unknown-linux-gnu", vector_bits = 256 : i64, ...}} {
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import ClassVar

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.passes.base import Pass
from .marks import TARGET
from .plain_attributes import from_attribute, to_attribute
from .target import Target

__all__ = ["SetTarget", "set_target", "target_of"]

#: Targets by the text of their attributes: half a dozen passes ask in each compilation, 0.1 ms each.
_READ: dict[str, Target] = {}


@dataclass(frozen=True)
class SetTarget(Pass):
    """Writes what code is for into the module.

    Attributes:
        target: as for ``relaxir.compile``: ``cpu`` is the machine this runs on.
        openmp: whether threads share loops, by calls of LLVM's OpenMP runtime.
    """

    name: ClassVar[str] = "relax-set-target"
    target: str = "cpu"
    openmp: bool = False

    def run(self, op: ir.Operation) -> None:
        set_target(op, Target.parse(self.target, self.openmp))


def set_target(module: ir.Operation, target: Target) -> None:
    """Writes the target down, and how its kernels want weights, in place."""
    with module.context:
        module.attributes[TARGET] = to_attribute(asdict(target))
    target.weight_layouts.write(module)


def target_of(module: ir.Operation) -> Target:
    """The target that a module is for. Raises RelaxError when it says none, or not all of it."""
    attribute = module.attributes.get(TARGET, None)
    text = "none" if attribute is None else str(attribute)
    if attribute is not None and text not in _READ:
        found = from_attribute(attribute)
        if isinstance(found, dict) and set(found) == {f.name for f in fields(Target)}:
            _READ[text] = Target(**found)
    if text not in _READ:
        raise RelaxError(f"expected a module with {TARGET}, which relax-set-target writes, got {text}", module.location)
    return _READ[text]
