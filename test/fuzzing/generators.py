"""The generators that ``make fuzz`` runs: a module each, with a function ``check(seed)``; adding one is a line here.

``check`` makes an input of the seed, equal ones for equal seeds, and returns None when everything that must hold does, or the
documented reason for which the input is refused; whatever it raises is a find. A module that also has ``text(seed)``, the
module that the input is, and ``check_text(text)``, what ``check`` does with it, has its finds reduced; where the seed says more
than the text, it is ``check_seeded(text, seed)``. A generator of graphs runs them where :mod:`fuzzing.targets` says, and is
there once more for each kind of GPU, as ``shapes-sm_80``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ParamSpec

from fuzzing.targets import CPU, GPUS, compiling_for

__all__ = ["GENERATORS", "Generator"]

_Taken = ParamSpec("_Taken")


@dataclass(frozen=True)
class Generator:
    """One generator.

    Attributes:
        name: what ``make fuzz ONLY=`` calls it.
        module: what holds its functions, imported when it is first run.
        budget: how many seeds, from 0 on, ``make test`` runs: about two seconds of them; none where another package is needed.
        seconds: of the processor's time that one seed may take before it counts as hung.
        gpu_budget: the same as ``budget``, of a generator of graphs on each kind of GPU; None of others.
        target: what graphs are compiled for.
    """

    name: str
    module: str
    budget: int
    seconds: int = 60
    gpu_budget: int | None = None
    target: str = CPU

    @property
    def check(self) -> Callable[[int], str | None]:
        """What runs one seed."""
        return self._there(self._module.check)

    @property
    def text(self) -> Callable[[int], str] | None:
        """The MLIR text of a seed, if the generator makes modules."""
        return getattr(self._module, "text", None)

    @property
    def check_text(self) -> Callable[[str, int], str | None]:
        """What ``check`` does with the text of a seed, and the seed."""
        module = self._module
        return self._there(getattr(module, "check_seeded", lambda text, seed: module.check_text(text)))

    def on_gpus(self) -> Iterator[Generator]:
        """The same on each kind of GPU."""
        if self.gpu_budget is not None:
            for target in GPUS:
                name = f"{self.name}-{target.partition(':')[2]}"
                yield replace(self, name=name, budget=self.gpu_budget, seconds=4 * self.seconds, target=target)

    def _there(self, function: Callable[_Taken, str | None]) -> Callable[_Taken, str | None]:
        """A function whose modules are compiled for the target."""
        if self.target == CPU:
            return function

        def check(*arguments: _Taken.args, **named: _Taken.kwargs) -> str | None:
            with compiling_for(self.target):
                return function(*arguments, **named)

        return check

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
    Generator("onnx", "fuzzing.mutated_onnx", budget=60),
    Generator("files", "fuzzing.mutated_files", budget=200),
    Generator("gguf", "fuzzing.mutated_gguf", budget=100),
    Generator("kills", "fuzzing.killed_preparations", budget=6),
    Generator("sizes", "fuzzing.size_variants", budget=8, gpu_budget=1),
    Generator("numbers", "fuzzing.elementwise_numbers", budget=2, gpu_budget=0),
    Generator("vectors", "fuzzing.vector_bodies", budget=6),
    Generator("kernels", "fuzzing.device_kernels", budget=2, gpu_budget=2),
    Generator("scalars", "fuzzing.device_scalars", budget=12),
)

GENERATORS = {g.name: g for each in _ON_CPUS for g in (each, *each.on_gpus())}
