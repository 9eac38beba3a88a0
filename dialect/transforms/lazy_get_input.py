"""Makes functions read each weight from a provider, just before its first use, instead of taking all of them as arguments.

Before::

    func.func @prepare(%w {relax.name = "w"}, %b {relax.name = "b"}) attributes {relax.num_input = 0 : i64} {
      %t = "relax.permute_dims"(%w)
      %c = "relax.astype"(%b)
      return %t, %c
    }

after::

    func.func @prepare(%provider: !relax.param_provider) attributes {relax.num_input = 1 : i64} {
      %w = "relax.get_param"(%provider) {index = 0 : i64, name = "w"}
      %t = "relax.permute_dims"(%w)
      %b = "relax.get_param"(%provider) {index = 1 : i64, name = "b"}
      %c = "relax.astype"(%b)
      return %t, %c
    }

The provider comes after the run-time inputs and is one of them from then on. A weight that is used in a region is read before
the op that has the region; one that nothing uses is never read. A weight that alone defines a symbol is read before the
symbol's first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..bindings import ir
from ..pass_manager import Pass
from .lazy_io import lazy_targets, read_weights_lazily

__all__ = ["LazyGetInput"]


@dataclass(frozen=True)
class LazyGetInput(Pass):
    """Makes functions read each weight from a provider just before its first use.

    Attributes:
        functions: names of the functions to change; by default all public ones with ``relax.num_input``, except those whose
            weights a transform function prepares.
    """

    name: ClassVar[str] = "relax-lazy-get-input"
    functions: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        read_weights_lazily(op, lazy_targets(op, self.functions))
