"""Names of prepared weights: readable, derived from the raw weights and the ops on them, and stable from run to run.

``q_proj.weight`` transposed is ``q_proj.weight.permute_dims``, then cast it is ``q_proj.weight.permute_dims.astype``; two
weights in one op are ``q_proj.weight+k_proj.weight.concat``; the second result of a split is ``w.split.1``. Of a value and what
comes from it, the value: ``w`` less its mean is ``w.subtract``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...bindings import ir
from ...call_graph import callee_of
from ...struct_info import is_tensor

__all__ = ["distinct", "result_names_of"]

#: Longer names are shortened to the first source, how many there are besides, and the last op. Real ones are below 80: a
#: fully qualified parameter name of a transformers model has about 60 characters.
MAX_LENGTH = 160


def result_names_of(op: ir.Operation, sources: Iterable[str]) -> list[str]:
    """Names for the results of an op that reads values of these names; not yet distinct from other names."""
    names = _plain(list(dict.fromkeys(sources)))
    if not any(is_tensor(r) for r in op.results):  # a scalar is never a weight, so its ops would only lengthen names
        return ["+".join(names)[:MAX_LENGTH]] * len(op.results)
    what = callee_of(op) if op.name == "func.call" else op.name.rpartition(".")[2]
    name = f"{'+'.join(names)}.{what}"
    if len(name) > MAX_LENGTH:
        name = f"{_short(names)}.{what}"
    count = len(op.results)
    return [name] if count == 1 else [f"{name}.{i}" for i in range(count)]


def distinct(name: str, taken: set[str]) -> str:
    """The name, or the first of ``name.1``, ``name.2`` ... that is not taken; enters it."""
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}.{number}"
    taken.add(candidate)
    return candidate


def _plain(names: list[str]) -> list[str]:
    """Without those that begin as another one does, and go on."""
    return [n for n in names if not any(n.startswith((f"{other}.", f"{other}+")) for other in names)]


def _short(names: list[str]) -> str:
    first = names[0].split("+", 1)[0]
    first = first if len(first) <= MAX_LENGTH // 2 else first[: MAX_LENGTH // 2].rstrip(".")
    others = sum(name.count("+") + 1 for name in names) - 1
    return f"{first}+{others}" if others else first
