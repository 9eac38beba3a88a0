"""What is left to do at run time: how often each relax op occurs in a function."""

from __future__ import annotations

import re
from collections import Counter

import relaxir as rx
from relaxir.dialect.functions import find_function

__all__ = ["counts"]


def counts(module: rx.Module, name: str = "main") -> Counter[str]:
    """The relax ops of a function by name, without ``relax.``."""
    text = find_function(module.ir.operation, name).operation.get_asm(use_local_scope=True)
    return Counter(re.findall(r'"relax\.(\w+)"', text))
