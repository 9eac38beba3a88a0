"""A model of transformers as its configuration describes it, for export: parameters take no memory, buffers are computed."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, cast

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.initialization import no_init_weights

from .experts import EXPERTS

__all__ = ["skeleton"]


def skeleton(model_class: type[PreTrainedModel], config: PreTrainedConfig) -> PreTrainedModel:
    """A model whose parameters are views, of stride 0, of one number each, in single precision.

    torch.export takes no parameters on ``meta`` beside inputs with contents; buffers, as frequencies, are needed as they are.
    Ties are kept. What is quantized in the checkpoint is here as the architecture has it.
    """
    with no_init_weights(), _parameters_without_memory():
        model = cast("Any", model_class)._from_config(config, dtype=torch.float32, experts_implementation=EXPERTS)
    model.tie_weights()
    return model.eval()


@contextlib.contextmanager
def _parameters_without_memory() -> Generator[None]:
    """Modules that are made meanwhile get one number for each parameter; one that several share stays one."""
    register = nn.Module.register_parameter
    known: dict[int, nn.Parameter] = {}
    made: list[nn.Parameter] = []  # those that were replaced: another object must not get the number of one of them

    def replace(param: nn.Parameter) -> None:
        one = nn.Parameter(torch.zeros((), dtype=param.dtype).expand(param.shape), requires_grad=False)
        made.append(param)
        known[id(param)] = known[id(one)] = one

    def registered(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and id(param) not in known:
            replace(param)
        register(self, name, None if param is None else known.get(id(param), param))

    nn.Module.register_parameter = registered
    try:
        yield
    finally:
        nn.Module.register_parameter = register
