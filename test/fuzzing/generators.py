"""The generators that ``make fuzz`` runs: a module each, with a function ``check(seed)``; adding one is a line here.

``check`` makes an input of the seed, equal ones for equal seeds, and returns None when everything that must hold does, or the
documented reason for which the input is refused; whatever it raises is a find. A module that also has ``text(seed)``, the
module that the input is, and ``check_text(text)``, what ``check`` does with it, has its finds reduced; where the seed says more
than the text, it is ``check_seeded(text, seed)``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["GENERATORS", "Generator"]


@dataclass(frozen=True)
class Generator:
    """One generator.

    Attributes:
        name: what ``make fuzz ONLY=`` calls it.
        module: what holds its functions, imported when it is first run.
        budget: how many seeds, from 0 on, ``make test`` runs: about two seconds of them; none where another package is needed.
        seconds: of the processor's time that one seed may take before it counts as hung.
    """

    name: str
    module: str
    budget: int
    seconds: int = 60

    @property
    def check(self) -> Callable[[int], str | None]:
        """What runs one seed."""
        return self._module.check

    @property
    def text(self) -> Callable[[int], str] | None:
        """The MLIR text of a seed, if the generator makes modules."""
        return getattr(self._module, "text", None)

    @property
    def check_text(self) -> Callable[[str, int], str | None]:
        """What ``check`` does with the text of a seed, and the seed."""
        module = self._module
        return module.check_seeded if hasattr(module, "check_seeded") else lambda text, seed: module.check_text(text)

    @property
    def _module(self) -> Any:
        return importlib.import_module(self.module)


GENERATORS = {
    g.name: g
    for g in (
        Generator("modules", "fuzzing.random_modules", budget=4),
        Generator("checked", "fuzzing.checked_modules", budget=2, seconds=240),
        Generator("shapes", "fuzzing.random_shapes", budget=4),
        Generator("pipelines", "fuzzing.random_pipelines", budget=12),
        Generator("refused", "fuzzing.refused_calls", budget=6),
        Generator("products", "fuzzing.matrix_products", budget=4),
        Generator("texts", "fuzzing.mutated_texts", budget=60),
        Generator("indices", "fuzzing.index_extremes", budget=6),
        Generator("flow", "fuzzing.control_flow", budget=6),
        Generator("bodies", "fuzzing.linalg_bodies", budget=12),
        Generator("headers", "fuzzing.file_headers", budget=60),
        Generator("nnsmith", "fuzzing.nnsmith_models", budget=0),
        Generator("onnx", "fuzzing.mutated_onnx", budget=60),
        Generator("files", "fuzzing.mutated_files", budget=200),
        Generator("gguf", "fuzzing.mutated_gguf", budget=100),
        Generator("kills", "fuzzing.killed_preparations", budget=6),
        Generator("sizes", "fuzzing.size_variants", budget=8),
        Generator("numbers", "fuzzing.elementwise_numbers", budget=2),
        Generator("vectors", "fuzzing.vector_bodies", budget=6),
        Generator("scalars", "fuzzing.device_scalars", budget=12),
    )
}
