"""JSON that strangers wrote: text in, values out."""

from __future__ import annotations

import gc
import json
from typing import Any

__all__ = ["parse_json"]


def parse_json(text: str | bytes, **hooks: Any) -> Any:
    """``json.loads`` with the garbage collector paused.

    Text that is nested too deep ends at Python's recursion limit, and a collection down there would run finalizers of native
    objects, which then fail and leak.

    Raises:
        ValueError: the text is no JSON.
        RecursionError: it is nested too deep.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        return json.loads(text, **hooks)
    finally:
        if running:
            gc.enable()
