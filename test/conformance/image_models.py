"""Compares models of images, one of each family of torchvision or timm, compiled, with PyTorch.

    .venv/bin/pip install --no-deps torchvision timm pillow
    .venv/bin/python test/conformance/image_models.py {torchvision,timm} [--open] [--jobs N] [--keep FILE] [NAME ...]

A family is what one of their files defines; the smallest model of it by its name is taken, with random weights. A line for each
that is not right, and how many are. What torch.export does not take does not count. ``--keep FILE`` is that of
``transformers_models.py``.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator

import torch
from model_runs import SIZES, Case, Tensors, is_stable, main_of, outcome, randomize

#: Sizes of images that are tried before the one that the model says.
_IMAGES = (64, 96, 224)

#: Words of names, the smallest model's first.
_SMALL = ("test", "zepto", "atto", "femto", "pico", "nano", "xxtiny", "xxt", "xt", "xxs", "xs", "tiny", "mini", "micro",
          "small", "t", "s", "0", "18", "b0", "b1", "m0", "16")  # fmt: skip


def _rank(name: str) -> tuple[int, int, str]:
    words = re.split(r"[_.]|(?<=[a-z])(?=\d)", name)
    return min((_SMALL.index(w) for w in words if w in _SMALL), default=len(_SMALL)), len(name), name


def torchvision_names() -> list[str]:
    """One model of each file of torchvision."""
    from torchvision import models

    families: dict[str, list[str]] = {}
    for name in models.list_models():
        families.setdefault(models.get_model_builder(name).__module__, []).append(name)
    return [min(names, key=_rank) for names in families.values()]


def timm_names() -> list[str]:
    """One model of each file of timm."""
    import timm

    return [min(names, key=_rank) for module in timm.list_modules() if (names := timm.list_models(module=module))]


def torchvision_case(name: str) -> Case:
    from torchvision import models

    takes = inspect.signature(models.get_model_builder(name)).parameters
    model = models.get_model(name, weights=None, **({"weights_backbone": None} if "weights_backbone" in takes else {}))
    is_detector = model.__module__.startswith("torchvision.models.detection")
    return _case(_Detector(model) if is_detector else model, ())


class _Detector(torch.nn.Module):
    """A model of lists of images, with a batch."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> list[dict[str, torch.Tensor]]:
        return self.model(list(images.unbind(0)))


def timm_case(name: str) -> Case:
    import timm

    model = timm.create_model(name, pretrained=False)
    return _case(model, model.pretrained_cfg["input_size"][1:2])


def _case(model: torch.nn.Module, sizes: tuple[int, ...]) -> Case:
    """The model with images of the first size that it takes, of 16 frames where it wants films."""
    torch.manual_seed(0)
    randomize(model)
    parameters = inspect.signature(model.forward).parameters.values()
    names = [p.name for i, p in enumerate(parameters) if i == 0 or p.name.startswith("image")]
    called = Tensors(model, names).eval()
    last: Exception = ValueError("no input")
    for shape in _shapes(sizes) if not isinstance(model, _Detector) else [(3, 64, 64)]:
        try:
            if is_stable(called, {n: torch.randn(SIZES[0][0], *shape) for n in names}):
                return Case(called, lambda rows, _, shape=shape: {n: torch.randn(rows, *shape) for n in names})
            last = ValueError("results are random")
        except Exception as error:
            last = error
    raise last


def _shapes(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield from ((3, size, size) for size in (*_IMAGES, *sizes))
    yield from ((3, 16, size, size) for size in (112, 224))


_LIBRARIES: dict[str, tuple[Callable[[], list[str]], Callable[[str], Case]]] = {
    "torchvision": (torchvision_names, torchvision_case),
    "timm": (timm_names, timm_case),
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in _LIBRARIES:
        sys.exit(f"expected {' or '.join(_LIBRARIES)}, got {sys.argv[1:2]}")
    all_names, build = _LIBRARIES[sys.argv.pop(1)]
    main_of(__doc__ or "", all_names, functools.partial(outcome, build))
