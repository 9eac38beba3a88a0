"""The generators that ``make fuzz`` runs: a module each, with a function ``check(seed)``; adding one is a line here.

``check`` makes an input of the seed, equal ones for equal seeds, and returns None when everything that must hold does, or the
documented reason for which the input is refused; whatever it raises is a find. A module that also has ``text(seed)``, the
module that the input is, and ``check_text(text)``, what ``check`` does with it, has its finds reduced; where the seed says more
than the text, it is ``check_seeded(text, seed)``. A generator of graphs runs them where :mod:`fuzzing.targets` says, and is
there once more for each kind of GPU, as ``shapes-sm_80``, and for all CPUs, as ``shapes-cpus``: there each graph has as many
seeds in a row as there are CPUs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fuzzing.targets import CPU, CPUS, GPUS, compiling_for

__all__ = ["GENERATORS", "Generator"]


@dataclass(frozen=True)
class Generator:
    """One generator.

    Attributes:
        name: what ``make fuzz ONLY=`` calls it.
        module: what holds its functions, imported when it is first run.
        budget: how many seeds, from 0 on, ``make test`` runs: about two seconds of them; none where another package is needed.
        seconds: of the processor's time that one seed may take before it counts as hung.
        gpu_budget: the same as ``budget``, of a generator of graphs on each kind of GPU; None of others.
        draws_cpus: whether its seeds say the CPU, too.
        targets: what graphs are compiled for.
    """

    name: str
    module: str
    budget: int
    seconds: int = 60
    gpu_budget: int | None = None
    draws_cpus: bool = False
    targets: tuple[str, ...] = (CPU,)

    def check(self, seed: int) -> str | None:
        """Runs one seed."""
        graph, target = self._parts(seed)
        with compiling_for(target):
            return self._module.check(graph)

    @property
    def text(self) -> Callable[[int], str] | None:
        """The MLIR text of a seed, if the generator makes modules."""
        made: Callable[[int], str] | None = getattr(self._module, "text", None)
        return made and (lambda seed: made(self._parts(seed)[0]))

    def check_text(self, text: str, seed: int) -> str | None:
        """What ``check`` does with the text of a seed, and the seed."""
        graph, target = self._parts(seed)
        with compiling_for(target):
            if hasattr(self._module, "check_seeded"):
                return self._module.check_seeded(text, graph)
            return self._module.check_text(text)

    def elsewhere(self) -> Iterator[Generator]:
        """The same on each kind of GPU, and on all CPUs, if it is a generator of graphs."""
        if self.gpu_budget is None:
            return
        for target in GPUS:
            name = f"{self.name}-{target.partition(':')[2]}"
            yield replace(self, name=name, budget=self.gpu_budget, seconds=4 * self.seconds, targets=(target,))
        if not self.draws_cpus:
            # Graphs for a GPU are drawn in tests for what they take; on any CPU they take as long as on this one.
            budget = len(CPUS) if self.gpu_budget else 0
            yield replace(self, name=f"{self.name}-cpus", budget=budget, targets=CPUS)

    def load(self) -> None:
        """Imports its module."""
        importlib.import_module(self.module)

    def _parts(self, seed: int) -> tuple[int, str]:
        """The seed of the graph, and what it is compiled for."""
        graph, target = divmod(seed, len(self.targets))
        return graph, self.targets[target]

    @property
    def _module(self) -> Any:
        return importlib.import_module(self.module)


_ON_CPUS = (
    Generator("modules", "fuzzing.random_modules", budget=4, gpu_budget=0),
    Generator("checked", "fuzzing.checked_modules", budget=2, seconds=240, gpu_budget=0),
    Generator("shapes", "fuzzing.random_shapes", budget=4, gpu_budget=1),
    Generator("pipelines", "fuzzing.random_pipelines", budget=12),
    Generator("refused", "fuzzing.refused_calls", budget=6, gpu_budget=1),
    Generator("products", "fuzzing.matrix_products", budget=4),
    Generator("alike", "fuzzing.alike_layers", budget=2, gpu_budget=0),
    Generator("texts", "fuzzing.mutated_texts", budget=60),
    Generator("indices", "fuzzing.index_extremes", budget=6, gpu_budget=0),
    Generator("flow", "fuzzing.control_flow", budget=6, gpu_budget=1),
    Generator("bodies", "fuzzing.linalg_bodies", budget=12, gpu_budget=1),
    Generator("headers", "fuzzing.file_headers", budget=60),
    Generator("nnsmith", "fuzzing.nnsmith_models", budget=0, gpu_budget=0),
    Generator("writes", "fuzzing.torch_writes", budget=8, gpu_budget=0),
    Generator("onnx", "fuzzing.mutated_onnx", budget=60),
    Generator("files", "fuzzing.mutated_files", budget=200),
    Generator("gguf", "fuzzing.mutated_gguf", budget=100),
    Generator("kills", "fuzzing.killed_preparations", budget=6),
    Generator("sizes", "fuzzing.size_variants", budget=8, gpu_budget=1),
    Generator("numbers", "fuzzing.elementwise_numbers", budget=2, gpu_budget=0, draws_cpus=True),
    Generator("vectors", "fuzzing.vector_bodies", budget=6),
    Generator("kernels", "fuzzing.device_kernels", budget=2, gpu_budget=2),
    Generator("scalars", "fuzzing.device_scalars", budget=12),
    Generator("winograd", "fuzzing.winograd_convolutions", budget=6),
)

GENERATORS = {g.name: g for each in _ON_CPUS for g in (each, *each.elsewhere())}
