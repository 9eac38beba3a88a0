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
start; a value returned twice is handed over once per result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..bindings import ir
from ..pass_manager import Pass
from .lazy_io import lazy_targets, write_results_lazily

__all__ = ["LazySetOutput"]


@dataclass(frozen=True)
class LazySetOutput(Pass):
    """Makes functions hand each result to a sink right after its definition.

    Attributes:
        functions: names of the functions to change; by default all public ones with ``relax.num_input``, except those whose
            weights a transform function prepares.
    """

    name: ClassVar[str] = "relax-lazy-set-output"
    functions: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        write_results_lazily(op, lazy_targets(op, self.functions))
