"""Operators of torch: what one computes in operators that relaxir imports, and the C function that computes the other."""

from pathlib import Path

import torch

import relaxir as rx


@torch.library.custom_op("acme::soft_sign", mutates_args=())
def soft_sign(x: torch.Tensor, sharpness: float) -> torch.Tensor:
    return torch.from_numpy(x.numpy() / (sharpness + abs(x.numpy())))


@soft_sign.register_fake
def _(x: torch.Tensor, sharpness: float) -> torch.Tensor:
    return torch.empty_like(x)


def computed(x: torch.Tensor, sharpness: float) -> torch.Tensor:
    return x / (sharpness + x.abs())


@torch.library.custom_op("acme::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x + x


@double.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


#: Built of ``acme.c`` when the package is, beside this file.
DOUBLE = rx.Extern(library=Path(__file__).with_name("libacme.so"), symbol="acme_double")
