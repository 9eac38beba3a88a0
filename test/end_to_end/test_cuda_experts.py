"""Folders of mixtures of experts on an emulated GPU: the tokens of a call are multiplied with the matrices of their experts."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import torch

from relaxir.transformers.folder_executables import FolderExecutables, Programs
from support.device_cases import TARGETS
from support.emulated_cuda import plans
from support.hf_folders import SMALL, loaded, saved

#: Rows of 64 elements and more are streamed where there are few.
_OPTIONS = SMALL | {"num_key_value_heads": 2, "num_experts_per_tok": 2, "hidden_size": 64}
#: Plain ones; with norms of queries, and experts of another size; with biases, interleaved gates and sinks of attention.
_MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mixtral": ("MixtralForCausalLM", "mixtral", {"num_local_experts": 3}),
    "qwen3-moe": ("Qwen3MoeForCausalLM", "qwen3_moe", {"num_experts": 5, "moe_intermediate_size": 80, "head_dim": 8}),
    "gpt-oss": ("GptOssForCausalLM", "gpt_oss", {"num_local_experts": 3, "head_dim": 8}),
}
_PROMPT = torch.tensor([[3, 14, 15, 92, 65, 35]])
_GREEDY = {"max_new_tokens": 4, "do_sample": False}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Any]]:
    """Of each model, made once, and transformers' own, whose experts are computed one by one."""

    @functools.cache
    def of(name: str) -> tuple[Path, Any]:
        class_name, kind, options = _MODELS[name]
        folder = tmp_path_factory.mktemp(name)
        model = saved(class_name, kind, _OPTIONS | options, folder)
        model.set_experts_implementation("eager")
        return folder, model

    return of


@pytest.fixture(scope="module", autouse=True)
def _exported_once() -> Generator[None]:
    """A folder is exported once for all targets, which takes most of the time: its module is the same for all GPUs."""
    modules, module = dict[str, Any](), FolderExecutables._module

    def once(self: FolderExecutables, programs: Programs) -> Any:
        if self.path not in modules:
            modules[self.path] = module(self, programs)
        return modules[self.path]

    FolderExecutables._module = once
    yield
    FolderExecutables._module = module


@pytest.mark.parametrize(
    ("name", "target"),
    [("mixtral", TARGETS[1]), ("qwen3-moe", TARGETS[1]), ("gpt-oss", TARGETS[0])],
)
def test_tokens_are_those_of_transformers(name: str, target: str, folders: Callable[[str], tuple[Path, Any]]) -> None:
    """Of a prompt, and one by one: two rows, whose matrices are streams. No host waits for what the router says."""
    folder, model = folders(name)
    compiled = loaded(folder, target=target, device="emulated")
    assert compiled.generate(_PROMPT, **_GREEDY).tolist() == model.generate(_PROMPT, **_GREEDY).tolist()
    executable = compiled.executable()
    assert executable.module_text.count('"relax.packed_grouped_matmul"') == 4  # two entries, of one layer
    assert len(executable.manifest.data["cuda"]["graphs"]) == 2
    assert sum(plan.startswith("columns=") for plan in plans(executable)) >= 2


def test_experts_of_four_bits(folders: Callable[[str], tuple[Path, Any]]) -> None:
    """A weight is off by up to 1/8 of its group's largest."""
    folder, model = folders("mixtral")
    compiled = loaded(folder, weights="int4", target=TARGETS[1], device="emulated")
    assert re.search(r"experts\.gate_up_proj .* 4 bits in groups of 32\n", str(compiled.executable().report))
    with torch.no_grad():
        expected = model(_PROMPT).logits
    assert (compiled(_PROMPT).logits - expected).norm() < 0.5 * expected.norm()
