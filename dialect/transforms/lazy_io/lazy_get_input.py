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

The provider comes after the run-time inputs and is one of them from then on. A weight is read once: before the first op that
uses it or a symbol that it alone defines, in a branch if that branch alone does, and before a loop. One that nothing uses is
never read. What is in a tuple is read one by one, by the names that ``relax.bundled`` has for it. Functions that call a changed
one call a private copy of it as it was.

With ``callback=functions`` there is no provider, and the weights come from functions that the module declares::

    func.func private @get_param_4x8xf32(index {relax.name = "index"}) -> tensor<4x8xf32>
        attributes {relax.callback = "get_param"}

    %w = call @get_param_4x8xf32(%c0) {relax.name = "w"} : (index) -> tensor<4x8xf32>

With ``extra-get=rank:i64`` the function has an input ``rank``, which every read passes on::

    %p = "relax.bind_argument"(%provider, %rank) {name = "rank"}
    %w = "relax.get_param"(%p) {index = 0 : i64, name = "w"}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import ir
from .options import LazyPass
from .reads import read_weights_lazily
from .targets import lazy_targets

__all__ = ["LazyGetInput"]


@dataclass(frozen=True)
class LazyGetInput(LazyPass):
    """Makes functions read each weight where it is first needed.

    Functions are by default all public ones with ``relax.num_input``, except those whose weights a transform function prepares.

    Attributes, besides those of :class:`.LazyPass`:
        extra_get: inputs that reads pass on, ``name:type``; ``name`` alone for one that is there.
    """

    name: ClassVar[str] = "relax-lazy-get-input"
    extra_get: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        style = self.style("extra-get", self.extra_get)
        read_weights_lazily(op, lazy_targets(op, self.functions), style)
