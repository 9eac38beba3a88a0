"""The vocabulary of a GGUF file: ``tokenizer.json`` and ``tokenizer_config.json`` in, metadata ``tokenizer.*`` out.

Sources: ``convert_hf_to_gguf.py`` of llama.cpp and ``gguf.vocab.SpecialVocab``, for what is written and how it is found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from ...dialect.errors import RelaxError
from ..files import inside, read_bytes
from ..json_text import parse_json
from .gguf_layout import GgufValue

__all__ = ["Vocabulary", "read_vocabulary"]

_Table = Mapping[str, Any]

_TOKENIZER, _CONFIG, _TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
# That of Gemma 3, with 262,144 tokens, has 33 MB.
_MAX_BYTES = 200_000_000

# Types of tokens.
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6

#: How texts are split before merging, by the expressions of ``pre_tokenizer``, as llama.cpp calls it.
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLITS: dict[tuple[str, ...], str] = {
    (_WORDS % r"\p{N}{1,3}",): "llama-bpe",
    (_WORDS % r"\p{N}",): "qwen2",
    (): "gpt-2",
}
_KEYS = {
    "bos": "bos_token_id", "eos": "eos_token_id", "unk": "unknown_token_id", "sep": "seperator_token_id",
    "pad": "padding_token_id", "mask": "mask_token_id",
}  # fmt: skip


class Vocabulary(NamedTuple):
    """Metadata of a vocabulary; where there is none, why."""

    values: Mapping[str, GgufValue]
    problem: str | None = None


def read_vocabulary(folder: str, config: _Table) -> Vocabulary:
    """The vocabulary in a folder.

    Args:
        folder: where the model lies.
        config: its ``config.json``: ``vocab_size`` says how many tokens there are, the rest are fillers.

    Raises:
        RelaxError: a file is there and cannot be read, or has no JSON object.
    """
    tokenizer, options = _json(folder, _TOKENIZER), _json(folder, _CONFIG) or {}
    if tokenizer is None:
        return Vocabulary({}, f"the folder has no {_TOKENIZER}")
    model = _table(tokenizer, "model")
    if model.get("type") != "BPE" or not isinstance(model.get("vocab"), dict):
        return Vocabulary({}, f"{_TOKENIZER} has a model of type {model.get('type')!r}, not BPE")
    size = config.get("vocab_size")
    tokens, kinds = _tokens(tokenizer, model, size if type(size) is int else 0)
    values: dict[str, GgufValue] = {}
    if model.get("byte_fallback"):
        values |= {"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default"}
        values |= {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": _scores(model, tokens)}
        values["tokenizer.ggml.add_space_prefix"] = _is_space_added(tokenizer)
    else:
        expressions = _expressions(tokenizer)
        split = None if expressions is None else _SPLITS.get(expressions)
        if split is None:
            return Vocabulary({}, f"{_TOKENIZER} splits texts as none of {', '.join(_SPLITS.values())}")
        values |= {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": split}
        values |= {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": [" ".join(m) for m in _merges(model)]}
    values["tokenizer.ggml.token_type"] = kinds
    return Vocabulary(values | _special(tokenizer, options, config, tokens) | _template(folder, options))


def _json(folder: str, name: str) -> dict[str, Any] | None:
    content = _content(folder, name)
    if content is None:
        return None
    try:
        found = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise RelaxError(f"'{os.path.join(folder, name)}': expected JSON, got {type(error).__name__}: {error}") from None
    if not isinstance(found, dict):
        raise RelaxError(f"'{os.path.join(folder, name)}': expected a JSON object, got {type(found).__name__}")
    return cast("dict[str, Any]", found)


def _content(folder: str, name: str) -> bytes | None:
    path = os.path.join(folder, name)
    return read_bytes(inside(folder, name, f"'{path}'"), _MAX_BYTES, "a vocabulary") if os.path.lexists(path) else None


def _table(table: _Table, key: str) -> _Table:
    found = table.get(key)
    return cast("_Table", found) if isinstance(found, Mapping) else {}


def _tables(table: _Table, key: str) -> list[_Table]:
    found = table.get(key)
    return [cast("_Table", t) for t in cast("list[object]", found) if isinstance(t, Mapping)] if isinstance(found, list) else []


def _tokens(tokenizer: _Table, model: _Table, size: int) -> tuple[list[str], list[int]]:
    """Tokens and their types by number; the numbers that none has are fillers."""
    found = {i: (t, _kind(t, model)) for t, i in cast("dict[str, int]", model["vocab"]).items()}
    for added in _tables(tokenizer, "added_tokens"):
        text = str(added.get("content"))
        is_unknown = bool(model.get("byte_fallback")) and text == model.get("unk_token")
        found[int(added["id"])] = (text, _UNKNOWN if is_unknown else _CONTROL if added.get("special") else _USER_DEFINED)
    count = max(size, max(found, default=-1) + 1)
    all_of_them = [found.get(i, (f"[PAD{i}]", _UNUSED)) for i in range(count)]
    return [text for text, _ in all_of_them], [kind for _, kind in all_of_them]


def _kind(token: str, model: _Table) -> int:
    if not model.get("byte_fallback"):
        return _NORMAL
    return _BYTE if re.fullmatch(r"<0x[0-9A-Fa-f]{2}>", token) else _NORMAL


def _merges(model: _Table) -> list[tuple[str, str]]:
    """Pairs in their order; a space in one, where the format has one between them, is the letter for it."""
    found = list[tuple[str, str]]()
    for merge in cast("list[object]", model.get("merges", [])):
        first, second = merge.split(" ", 1) if isinstance(merge, str) else cast("list[str]", merge)
        found.append((first.replace(" ", "Ġ"), second.replace(" ", "Ġ")))
    return found


def _scores(model: _Table, tokens: list[str]) -> list[float]:
    """Of what is merged sooner a higher one: llama.cpp merges by scores here, as SentencePiece does, not by pairs."""
    ranks = dict[str, int]()
    for i, (first, second) in enumerate(_merges(model)):
        ranks.setdefault(first + second, i)
    return [float(-ranks[t]) if t in ranks else 0.0 for t in tokens]


def _parts(tokenizer: _Table, key: str, inner: str) -> list[_Table]:
    """A part of a tokenizer that is a sequence, or one alone."""
    part = _table(tokenizer, key)
    return (_tables(part, inner) or [part]) if part else []


def _expressions(tokenizer: _Table) -> tuple[str, ...] | None:
    """The expressions that texts are split by; None where they are split in another way than these tell."""
    found, parts = list[str](), _parts(tokenizer, "pre_tokenizer", "pretokenizers")
    for part in parts:
        expression = _table(part, "pattern").get("Regex")
        if part.get("type") == "Split" and isinstance(expression, str):
            found.append(expression)
        elif part.get("type") != "ByteLevel" or (bool(part.get("use_regex", True)) == bool(found)):
            return None
    return tuple(found) if parts else None


def _is_space_added(tokenizer: _Table) -> bool:
    """Whether a text begins with a space that it does not have."""
    prepends = any(p.get("type") == "Prepend" for p in _parts(tokenizer, "normalizer", "normalizers"))
    spaces = [p for p in _parts(tokenizer, "pre_tokenizer", "pretokenizers") if p.get("type") == "Metaspace"]
    return prepends or any(p.get("prepend_scheme", "always") != "never" for p in spaces)


def _special(tokenizer: _Table, options: _Table, config: _Table, tokens: list[str]) -> dict[str, GgufValue]:
    """Numbers of the tokens that have a role, and which are added to a text."""
    numbers = {text: i for i, text in enumerate(tokens)}
    found: dict[str, GgufValue] = {}
    for role, key in _KEYS.items():
        token: object = options.get(f"{role}_token")
        text: object = cast("_Table", token).get("content") if isinstance(token, Mapping) else token
        number = numbers.get(text) if isinstance(text, str) else _first(config.get(f"{role}_token_id"))
        if type(number) is int and 0 <= number < len(tokens):
            found[f"tokenizer.ggml.{key}"] = number
    return found | _added(tokenizer, options, tokens, found)


def _added(tokenizer: _Table, options: _Table, tokens: list[str], numbers: Mapping[str, GgufValue]) -> dict[str, GgufValue]:
    """Whether a text gets a first and a last token, as the options say, else as the template of one text has it."""
    templates = [p for p in _parts(tokenizer, "post_processor", "processors") if p.get("type") == "TemplateProcessing"]
    found: dict[str, GgufValue] = {}
    for role, place in (("bos", 0), ("eos", -1)):
        own = numbers.get(f"tokenizer.ggml.{role}_token_id")
        ends = [_table(_tables(t, "single")[place], "SpecialToken").get("id") for t in templates if _tables(t, "single")]
        said = options.get(f"add_{role}_token")
        if isinstance(said, bool):
            found[f"tokenizer.ggml.add_{role}_token"] = said
        elif isinstance(own, int) and any(ends):
            found[f"tokenizer.ggml.add_{role}_token"] = tokens[own] in ends
    return found


def _first(value: object) -> object:
    return cast("list[object]", value)[0] if isinstance(value, list) and value else value


def _template(folder: str, options: _Table) -> dict[str, GgufValue]:
    content = _content(folder, _TEMPLATE)
    text: object = options.get("chat_template") if content is None else content.decode(errors="replace")
    return {"tokenizer.chat_template": text} if isinstance(text, str) else {}
