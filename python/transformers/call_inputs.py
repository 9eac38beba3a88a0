"""Inputs of a call as transformers takes them, to those of an executable; what these can not say is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..dialect.errors import RelaxError

__all__ = ["expect_known", "kept_places", "mask_of", "numbers_of", "positions_of", "tokens_of", "whole_mask"]


def expect_known(given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raises RelaxError for an input that is none of these names; None, or False, is no input."""
    unknown = [name for name, value in given.items() if value is not None and value is not False]
    if unknown:
        raise RelaxError(f"expected inputs {', '.join(names)}, got {', '.join(unknown)}")


def tokens_of(given: Any, name: str) -> torch.Tensor:
    """[rows, n] numbers of tokens, of any integers.

    Raises:
        RelaxError: they are none, or there are none.
    """
    if not _is_whole(given) or given.ndim != 2 or 0 in given.shape:
        raise RelaxError(f"expected {name} as integers [rows, tokens], one or more, got {_text(given)}")
    return numbers_of(given, name)


def numbers_of(given: torch.Tensor, name: str) -> torch.Tensor:
    """Integers from 0 on; code would count others from the end of a table.

    Raises:
        RelaxError: there are others.
    """
    if given.numel() and given.min() < 0:
        raise RelaxError(f"expected {name} from 0 on, got {int(given.min())}")
    return given.long()


def mask_of(given: Any, name: str, rows: int, count: int) -> torch.Tensor:
    """[rows, count] whether a token counts, of zeros and ones of any dtype; what a mask has beyond is nobody's.

    Masks of four dimensions say what each token sees: layers with windows, states or biases take them differently.

    Raises:
        RelaxError: it is another mask.
    """
    if not isinstance(given, torch.Tensor) or given.ndim != 2 or len(given) != rows or given.shape[1] < count:
        raise RelaxError(f"expected {name} of zeros and ones [{rows}, {count}], for each token so far, got {_text(given)}")
    return whole_mask(given[:, :count], name)


def whole_mask(given: torch.Tensor, name: str) -> torch.Tensor:
    """A mask of zeros and ones as truth values.

    Raises:
        RelaxError: there are others, as in a mask that is added.
    """
    found = given.bool()
    if given.dtype is not torch.bool and not torch.equal(found.to(given.dtype), given):
        raise RelaxError(f"expected {name} of zeros, for padding, and ones, got other numbers")
    return found


def positions_of(given: Any, rows: int, count: int) -> torch.Tensor:
    """[rows, count] positions of any integers, or of one row for all.

    Raises:
        RelaxError: they are others.
    """
    if not _is_whole(given) or tuple(given.shape) not in ((rows, count), (1, count)):
        raise RelaxError(f"expected position_ids as integers [{rows}, {count}], one for each of input_ids, got {_text(given)}")
    return given.long().expand(rows, -1)


def kept_places(wanted: Any, count: int) -> torch.Tensor:
    """Of which of so many tokens logits are wanted: of the last ones, all for 0, or of those that a tensor selects.

    Raises:
        RelaxError: there are no such tokens.
    """
    is_number = isinstance(wanted, int) and not isinstance(wanted, bool)
    if not is_number and not (isinstance(wanted, torch.Tensor) and wanted.ndim == 1):
        raise RelaxError(f"expected logits_to_keep as a number or a tensor of one dimension, got {_text(wanted)}")
    try:
        found = torch.arange(count)[slice(-wanted, None) if is_number else wanted]
    except IndexError:
        found = torch.zeros(0)
    if not len(found):
        raise RelaxError(f"expected logits_to_keep of some of {count} tokens, got {torch.as_tensor(wanted).tolist()}")
    return found


def _is_whole(given: Any) -> bool:
    if not isinstance(given, torch.Tensor):
        return False
    return not given.is_floating_point() and not given.is_complex() and given.dtype is not torch.bool


def _text(given: Any) -> str:
    if not isinstance(given, torch.Tensor):
        return "none" if given is None else type(given).__name__
    return f"{str(given.dtype).removeprefix('torch.')} {list(given.shape)}"
