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

Only functions with ``relax.transform_for`` change, inference never does. :mod:`.lazy_get_input` and :mod:`.lazy_set_output`,
which do one end each, tell about the options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import ir
from .options import LazyPass
from .reads import read_weights_lazily
from .targets import lazy_targets
from .writes import write_results_lazily

__all__ = ["LazyTransformParams"]


@dataclass(frozen=True)
class LazyTransformParams(LazyPass):
    """Makes transform functions read weights from a provider and hand prepared weights to a sink, one by one.

    Functions are by default all transform functions.

    Attributes, besides those of :class:`.LazyPass`:
        extra_get: inputs that reads pass on, ``name:type``; ``name`` alone for one that is there.
        extra_set: inputs that writes pass on.
    """

    name: ClassVar[str] = "relax-lazy-transform-params"
    extra_get: tuple[str, ...] = ()
    extra_set: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        reads = self.style("extra-get", self.extra_get)
        writes = self.style("extra-set", self.extra_set).knowing(reads)
        transforms = lazy_targets(op, self.functions, transforms=True)
        read_weights_lazily(op, transforms, reads)
        write_results_lazily(op, transforms, writes)
