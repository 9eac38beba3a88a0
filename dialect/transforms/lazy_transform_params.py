"""Makes transform functions lazy at both ends: a weight is read before its first use, a result is handed over when it is there.

Before::

    func.func @main_transform_params(%w {relax.name = "w"}) -> (tensor<4x8xf32> {relax.name = "w.permute_dims"})
        attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
      %t = "relax.permute_dims"(%w)
      return %t
    }

after::

    func.func @main_transform_params(%provider: !relax.param_provider, %sink: !relax.output_sink)
        attributes {relax.num_input = 2 : i64, relax.transform_for = @main} {
      %w = "relax.get_param"(%provider) {index = 0 : i64, name = "w"}
      %t = "relax.permute_dims"(%w)
      "relax.set_output"(%sink, %t) {index = 0 : i64, name = "w.permute_dims"}
      return
    }

Only functions with ``relax.transform_for`` change, inference never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..bindings import ir
from ..functions import body_of, functions, transform_targets
from ..pass_manager import Pass
from .lazy_io import read_weights_lazily, write_results_lazily

__all__ = ["LazyTransformParams"]


@dataclass(frozen=True)
class LazyTransformParams(Pass):
    """Makes transform functions read weights from a provider and hand prepared weights to a sink, one by one."""

    name: ClassVar[str] = "relax-lazy-transform-params"

    def run(self, op: ir.Operation) -> None:
        transforms = [f for f in functions(op) if transform_targets(f) and body_of(f) is not None]
        read_weights_lazily(op, transforms)
        write_results_lazily(op, transforms)
