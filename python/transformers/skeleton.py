"""A model of transformers as its configuration describes it, for export: parameters take no memory, buffers are computed."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, cast

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.initialization import no_init_weights

from .adjusting import adjust
from .experts import EXPERTS

__all__ = ["skeleton"]


def skeleton(model_class: type[PreTrainedModel], config: PreTrainedConfig, experts: str = EXPERTS) -> PreTrainedModel:
    """A model whose parameters are views, of stride 0, of one number each, in single precision.

    torch.export takes no parameters on ``meta`` beside inputs with contents; buffers, as frequencies, are needed as they are.
    Ties are kept. What is quantized in the checkpoint is here as the architecture has it. ``experts`` is the form of mixtures
    (:mod:`.experts`).
    """
    with no_init_weights(), _parameters_on_meta():  # which takes what modules write to them, as stride 0 does not
        model = cast("Any", model_class)._from_config(config, dtype=torch.float32, experts_implementation=experts)
    model.tie_weights()
    known = dict[int, nn.Parameter]()
    for module in model.modules():
        for name, param in module.named_parameters(recurse=False, remove_duplicate=False):
            one = known.get(id(param))
            if one is None:
                one = nn.Parameter(torch.zeros((), dtype=param.dtype).expand(param.shape), requires_grad=False)
            module._parameters[name] = known[id(param)] = one
    adjust(model)
    return model.eval()


@contextlib.contextmanager
def _parameters_on_meta() -> Generator[None]:
    """Modules that are made meanwhile get their parameters without memory; one that several share stays one."""
    register = nn.Module.register_parameter
    known = WeakIdKeyDictionary()

    def on_meta(param: nn.Parameter) -> nn.Parameter:
        if not param.is_meta and param not in known:
            known[param] = nn.Parameter(param.detach().to("meta"), requires_grad=False)
        return param if param.is_meta else known[param]

    def registered(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        register(self, name, None if param is None else on_meta(param))

    nn.Module.register_parameter = registered
    try:
        yield
    finally:
        nn.Module.register_parameter = register
