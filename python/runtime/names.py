"""Which tensor of a checkpoint is which weight of a model: names in, pairs of names out, and hints where they do not agree.

A checkpoint may call its tensors otherwise: ``rename`` says how. Of tied weights it may hold one alone.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from ..dialect.errors import RelaxError

__all__ = ["Rename", "near_names", "other_name", "prefix_hint", "rename_rules", "renamed"]

#: How tensors of a checkpoint are called: a regular expression and what takes its place, one pair or several in order.
Rename = Mapping[str, str] | Sequence[str] | str | None

# What models call the weights that `tie_word_embeddings` makes one, without what is before it: embeddings and output layers.
_INPUTS: tuple[str, ...] = (
    "embed_tokens.weight",
    "wte.weight",
    "embed_in.weight",
    "word_embeddings.weight",
    "shared.weight",
    "embedding.weight",
)
_OUTPUTS: tuple[str, ...] = (
    "lm_head.weight",
    "embed_out.weight",
    "predictions.decoder.weight",
    "output.weight",
    "generator_lm_head.weight",
)
_ALWAYS: tuple[tuple[str, ...], ...] = (
    ("predictions.bias", "predictions.decoder.bias"),
    ("lm_head.bias", "lm_head.decoder.bias"),
)

# What norms were called first, and are now.
_LEGACY = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))

# What modules with experts are called in files, and in models of transformers.
_MODULES = (".block_sparse_moe.", ".mlp.")

# More names than this are not compared one by one for a hint, which takes a millisecond for 20.
_NEAR = 20_000


def rename_rules(rename: Rename) -> list[tuple[re.Pattern[str], str]]:
    """The rules in order.

    Args:
        rename: a mapping from regular expressions to replacements, or texts ``regex=replacement`` (the last ``=`` counts).

    Raises:
        RelaxError: it is neither, or an expression is none.
    """
    if rename is None:
        return []
    if isinstance(rename, Mapping):
        pairs = list(rename.items())
    else:
        texts = [rename] if isinstance(rename, str) else rename
        if not isinstance(texts, Sequence):
            raise RelaxError(f"expected rename as a mapping or as texts 'regex=replacement', got {type(texts).__name__}")
        pairs = [_pair(text) for text in texts]
    return [_rule(pattern, replacement) for pattern, replacement in pairs]


def _pair(text: object) -> tuple[str, str]:
    pattern, equals, replacement = text.rpartition("=") if isinstance(text, str) else ("", "", "")
    if not equals or not pattern:
        raise RelaxError(f"expected rename as 'regex=replacement', got {text!r}")
    return pattern, replacement


def _rule(pattern: object, replacement: object) -> tuple[re.Pattern[str], str]:
    if not isinstance(pattern, str) or not isinstance(replacement, str):
        raise RelaxError(f"expected rename as texts, got {pattern!r}: {replacement!r}")
    try:
        compiled = re.compile(pattern)
        _ = re.sub(pattern, replacement, "")  # a group in the replacement that the expression lacks
        return compiled, replacement
    except (re.error, IndexError) as error:
        raise RelaxError(
            f"expected a regular expression and its replacement, got {pattern!r}: {replacement!r}: {error}"
        ) from None


def renamed(names: Iterable[str], rules: Sequence[tuple[re.Pattern[str], str]], where: str) -> dict[str, str]:
    """Of each new name the name that the checkpoint has.

    Raises:
        RelaxError: a rule changes no name, or two tensors get one name.
    """
    found: dict[str, str] = {}
    used = [0] * len(rules)
    given = list(names)
    for name in given:
        new = name
        for i, (pattern, replacement) in enumerate(rules):
            new, count = pattern.subn(replacement, new)
            used[i] += count
        if new in found:
            raise RelaxError(f"{where}: expected names that differ after rename, got '{new}' for '{found[new]}' and '{name}'")
        found[new] = name
    for (pattern, _), count in zip(rules, used, strict=True):
        if not count:
            near = near_names(pattern.pattern, given)
            raise RelaxError(f"{where}: expected rename {pattern.pattern!r} to match a name, got none of {len(given)}{near}")
    return found


def near_names(name: str, names: Collection[str], count: int = 3) -> str:
    """What a name may have meant, as the end of a message."""
    last = name.rpartition(".")[2]
    candidates = list(names) if len(names) <= _NEAR else [n for n in names if n.rpartition(".")[2] == last][:_NEAR]
    found = difflib.get_close_matches(name, candidates, count)
    return f" (near: {', '.join(found)})" if found else ""


def prefix_hint(missing: Collection[str], names: Collection[str]) -> str | None:
    """What to rename so that missing names are found, when a prefix is all that is between them.

    Args:
        missing: names that no tensor has.
        names: those of the tensors.
    """
    wanted = set(missing)
    adding = Counter(p for name in wanted for p, rest in _splits(name) if rest in names)
    dropping = Counter(p for name in names for p, rest in _splits(name) if rest in wanted)
    best = max((adding, dropping), key=lambda c: max(c.values(), default=0))
    if not best:
        return None
    prefix, count = best.most_common(1)[0]
    how = {"^": prefix} if best is adding else {f"^{re.escape(prefix)}": ""}
    share = f"all {count}" if count == len(wanted) else f"{count} of {len(wanted)}"
    whose = "the model's" if best is adding else "the checkpoint's"
    (pattern, text), told = next(iter(how.items())), f"{share} match without the prefix '{prefix}' of {whose} names"
    return f"{told}: rename={json.dumps(how)}, --rename {shlex.quote(f'{pattern}={text}')}"


def _splits(name: str) -> list[tuple[str, str]]:
    """A name as prefix, which ends with a dot, and rest, in every way."""
    dots = [i + 1 for i, c in enumerate(name) if c == "."]
    return [(name[:i], name[i:]) for i in dots]


def other_name(name: str, names: Collection[str], config: Mapping[str, Any]) -> str | None:
    """The tensor that is a weight under another name by the conventions of Hugging Face; None where there is none.

    Output layers and norms are called in several ways, and of weights that are tied a checkpoint holds one.

    Args:
        name: a weight that is not among the names.
        names: those of the checkpoint, renamed.
        config: the model's, whose ``tie_word_embeddings`` is true unless it says otherwise; empty for no Hugging Face model.
    """
    if not config:
        return None
    for old, new in _LEGACY:
        if name.endswith(new) and name.removesuffix(new) + old in names:
            return name.removesuffix(new) + old
    old, new = _MODULES
    if new in name and (moved := name.replace(new, old)) in names:
        return moved
    groups: list[tuple[str, ...]] = [g for g in _ALWAYS if _is_end(name, g)] + ([_OUTPUTS] if _is_end(name, _OUTPUTS) else [])
    if _is_tied(config) and _is_end(name, _OUTPUTS + _INPUTS):
        groups.append(_INPUTS + _OUTPUTS)
    for group in groups:
        others = [end for end in group if not _is_end(name, [end])]
        found = [n for n in names if _is_end(n, others)]
        if len(found) == 1:
            return found[0]
    return None


def _is_tied(config: Mapping[str, Any]) -> bool:
    text = config.get("text_config")
    inner = cast("Mapping[str, Any]", text) if isinstance(text, Mapping) else {}
    return bool(config.get("tie_word_embeddings", inner.get("tie_word_embeddings", True)))


def _is_end(name: str, ends: Iterable[str]) -> bool:
    """Whether a name ends with one of these at a dot."""
    return any(name == end or name.endswith("." + end) for end in ends)
