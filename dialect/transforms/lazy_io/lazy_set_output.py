"""Makes functions hand each result to a sink, right after its definition, instead of returning all of them at the end.

Before::

    func.func @prepare(%w, %b) -> ({relax.name = "w.t"}, {relax.name = "b.h"}) attributes {relax.num_input = 0 : i64} {
      %t = "relax.permute_dims"(%w)
      %c = "relax.astype"(%b)
      return %t, %c
    }

after::

    func.func @prepare(%sink: !relax.output_sink, %w, %b) attributes {relax.num_input = 1 : i64} {
      %t = "relax.permute_dims"(%w)
      "relax.set_output"(%sink, %t) {index = 0 : i64, name = "w.t"}
      %c = "relax.astype"(%b)
      "relax.set_output"(%sink, %c) {index = 1 : i64, name = "b.h"}
      return
    }

The sink comes after the run-time inputs and is one of them from then on. An argument that is returned is handed over at the
start; a value returned twice is handed over once per result; the result of a branch or a loop after it; what is in a tuple one
by one. Results of a transform function go by the names of the weights that it prepares, their own or those of its targets. With
``callback=functions`` there is no sink, and results go to functions that the module declares::

    func.func private @set_output_8x4xf32(index {relax.name = "index"}, tensor<8x4xf32> {relax.name = "value"})
        attributes {relax.callback = "set_output"}

    call @set_output_8x4xf32(%c0, %t) {relax.name = "w.t"} : (index, tensor<8x4xf32>) -> ()

With ``extra-set=rank:i64`` the function has an input ``rank``, which every write passes on::

    %s = "relax.bind_argument"(%sink, %rank) {name = "rank"}
    "relax.set_output"(%s, %t) {index = 0 : i64, name = "w.t"}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import ir
from .options import LazyPass
from .targets import lazy_targets
from .writes import write_results_lazily

__all__ = ["LazySetOutput"]


@dataclass(frozen=True)
class LazySetOutput(LazyPass):
    """Makes functions hand each result to a sink right after its definition.

    Functions are by default all public ones with ``relax.num_input``, except those whose weights a transform function prepares.

    Attributes, besides those of :class:`.LazyPass`:
        extra_set: inputs that writes pass on, ``name:type``; ``name`` alone for one that is there.
    """

    name: ClassVar[str] = "relax-lazy-set-output"
    extra_set: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        style = self.style("extra-set", self.extra_set)
        write_results_lazily(op, lazy_targets(op, self.functions), style)
