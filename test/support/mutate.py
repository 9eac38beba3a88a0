"""Mutants of the lit tests' inputs: texts that nearly are modules, as users write them."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable
from pathlib import Path

from relaxir.dialect.pass_manager import registered
from relaxir.lowering.passes import register_passes

ROOT = Path(__file__).resolve().parents[1]
TOKEN = re.compile(r'[%@!#]?[\w.]+|"[^"\n]*"|[^\s\w]')
NUMBERS = ("0", "-1", "1", "2147483648", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "?", "nan")
UPSTREAM = ("canonicalize", "cse", "symbol-dce", "inline")

Mutation = Callable[[random.Random, str, list[str]], str]


def _replace_token(rng: random.Random, text: str, tokens: list[str]) -> str:
    return _edited(rng, text, rng.choice(tokens))


def _drop_token(rng: random.Random, text: str, tokens: list[str]) -> str:
    return _edited(rng, text, "")


def _odd_number(rng: random.Random, text: str, tokens: list[str]) -> str:
    return _edited(rng, text, rng.choice(NUMBERS))


def _copy_line(rng: random.Random, text: str, tokens: list[str]) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "\n".join(lines)


def _drop_line(rng: random.Random, text: str, tokens: list[str]) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def _edited(rng: random.Random, text: str, new: str) -> str:
    found = list(TOKEN.finditer(text))
    if not found:
        return text
    at = rng.choice(found)
    return text[: at.start()] + new + text[at.end() :]


MUTATIONS: tuple[Mutation, ...] = (_replace_token, _drop_token, _odd_number, _copy_line, _drop_line)


@functools.cache
def _corpus() -> tuple[list[str], list[str], list[str]]:
    """What is mutated, the tokens that occur in it, and the passes to run; imports every pass."""
    register_passes()
    # Piece by piece: most mutants then differ from a valid module in one place.
    files = (path.read_text() for path in sorted(ROOT.rglob("*.mlir")))
    inputs = [piece for text in files for piece in re.split(r"(?m)^// -----$", text)]
    tokens = sorted({token for text in inputs for token in TOKEN.findall(text)})
    passes = [*sorted(registered()), *UPSTREAM]
    list(registered().values())  # imports every pass now, not in each fork
    return inputs, tokens, passes


def mutant(seed: int) -> tuple[str, list[str]]:
    """A module with one to three changes, and flags for relax-opt."""
    rng = random.Random(seed)
    inputs, tokens, passes = _corpus()
    text = rng.choice(inputs)
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(MUTATIONS)(rng, text, tokens)
    flags = ["--allow-unregistered-dialect"] * rng.randint(0, 1) + [f"--{p}" for p in rng.sample(passes, rng.randint(0, 2))]
    return text, flags
