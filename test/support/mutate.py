"""Mutants of the lit tests' inputs: texts that are modules, or nearly, as users write them and as their tools do."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from relaxir.dialect.passes.manager import registered
from relaxir.lowering.passes import register_passes

__all__ = ["MUTATIONS", "mutant"]

ROOT = Path(__file__).resolve().parents[1]
TOKEN = re.compile(r'[%@!#]?[\w.]+|"[^"\n]*"|[^\s\w]')
TENSOR = re.compile(r"tensor<[^<>{}]*(?:\{[^{}]*\})?[^<>{}]*>")
NUMBER = re.compile(r"(?<![\w.%@])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?(?![\w.])")
ATTRIBUTE = re.compile(r'\b(\w+) = ("[^"\n]*"|[^\s,{}"]+(?:<[^<>]*>)?(?: : \w+)?)')
NUMBERS = (
    "0", "-1", "1", "2", "3", "127", "255", "2147483648", "-2147483648", "4294967296", "9223372036854775807",
    "-9223372036854775808", "99999999999999999999", "?", "nan", "0.0", "-0.0", "1.0e308", "0x7FF0000000000000",
)  # fmt: skip
DTYPES = (
    "f32",
    "f16",
    "bf16",
    "f64",
    "i1",
    "i4",
    "i8",
    "i32",
    "i64",
    "ui8",
    "ui32",
    "f8E4M3FN",
    "index",
    "complex<f32>",
    "none",
)
DIMENSIONS = ("0", "1", "2", "3", "4", "5", "7", "8", "16", "64", "?", "1048576", "9223372036854775807")
SYMBOLS = (
    "n", "m", "k", "n + 1", "n - 5", "-n", "n * 2", "n * m", "n // 2", "n % 3", "n // m", "n // (m - 3)", "n % 0", "2 * n + 1",
    "0", "n * 9223372036854775807", "(n + 3) // 4 * 4", "?", "", "n n", "n ** n", "N", "relax",
)  # fmt: skip
UPSTREAM = ("canonicalize", "cse", "symbol-dce", "inline")

Tokens = Sequence[str]
Mutation = Callable[[random.Random, str, "Corpus"], str]


class Corpus:
    """What mutants are made of: the modules, and what occurs in them."""

    def __init__(self, inputs: Iterable[str], passes: Sequence[str]):
        self.inputs, self.passes = list(inputs), list(passes)
        self.tokens = sorted({token for text in self.inputs for token in TOKEN.findall(text)})
        self.types = sorted({t for text in self.inputs for t in TENSOR.findall(text)})
        self.ops = sorted({t for t in self.tokens if t.startswith('"relax.')})
        self.values: dict[str, list[str]] = {}
        for text in self.inputs:
            for name, value in ATTRIBUTE.findall(text):
                self.values.setdefault(name, []).append(value)
        self.attributes = sorted(self.values)


def _replaced(rng: random.Random, text: str, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> str:
    """One of the matches replaced, or all that are like it, which leaves more modules valid."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    at = rng.choice(found)
    made = new(at)
    if rng.random() < 0.4:
        return pattern.sub(lambda m: made if m[0] == at[0] else m[0], text)
    return text[: at.start()] + made + text[at.end() :]


def _replace_token(rng: random.Random, text: str, corpus: Corpus) -> str:
    return _replaced(rng, text, TOKEN, lambda _: rng.choice(corpus.tokens))


def _drop_token(rng: random.Random, text: str, corpus: Corpus) -> str:
    return _replaced(rng, text, TOKEN, lambda _: "")


def _swap_tokens(rng: random.Random, text: str, corpus: Corpus) -> str:
    found = list(TOKEN.finditer(text))
    if len(found) < 2:
        return text
    first, second = sorted(rng.sample(found, 2), key=lambda m: m.start())
    return text[: first.start()] + second[0] + text[first.end() : second.start()] + first[0] + text[second.end() :]


def _odd_number(rng: random.Random, text: str, corpus: Corpus) -> str:
    return _replaced(rng, text, NUMBER, lambda _: rng.choice(NUMBERS))


def _other_type(rng: random.Random, text: str, corpus: Corpus) -> str:
    return _replaced(rng, text, TENSOR, lambda _: rng.choice(corpus.types))


def _other_dimension(rng: random.Random, text: str, corpus: Corpus) -> str:
    return _replaced(rng, text, re.compile(r"(?<=[<x])(?:\d+|\?)(?=x)"), lambda _: rng.choice(DIMENSIONS))


def _other_rank(rng: random.Random, text: str, corpus: Corpus) -> str:
    return _replaced(rng, text, re.compile(r"(?<=tensor<)(?:\d+x|\?x)?"), lambda m: rng.choice(["", m[0] + "2x", m[0] * 2]))


def _other_dtype(rng: random.Random, text: str, corpus: Corpus) -> str:
    pattern = re.compile(rf"(?<=[<x])(?:{'|'.join(d for d in DTYPES if '<' not in d)})(?=[>,])")
    return _replaced(rng, text, pattern, lambda _: rng.choice(DTYPES))


def _other_op(rng: random.Random, text: str, corpus: Corpus) -> str:
    return _replaced(rng, text, re.compile(r'"relax\.\w+"'), lambda _: rng.choice(corpus.ops))


def _other_attribute(rng: random.Random, text: str, corpus: Corpus) -> str:
    def new(match: re.Match[str]) -> str:
        name = match[1] if rng.random() < 0.8 else rng.choice(corpus.attributes)
        of = match[1] if rng.random() < 0.8 and match[1] in corpus.values else rng.choice(corpus.attributes)
        value = rng.choice(corpus.values[of])
        return f"{name} = {value}"

    return _replaced(rng, text, ATTRIBUTE, new)


def _foreign_attribute(rng: random.Random, text: str, corpus: Corpus) -> str:
    """An attribute of any kind that MLIR has, as a value that is there, or beside what is there."""
    value = rng.choice(FOREIGN)
    if rng.random() < 0.5:
        return _replaced(rng, text, ATTRIBUTE, lambda m: f"{m[1]} = {value}")
    name = rng.choice(("relax.more", "more", "arith.more", rng.choice(corpus.attributes)))
    return _replaced(rng, text, re.compile(r"\{(?=[\w.]+ = )"), lambda _: f"{{{name} = {value}, ")


def _other_symbol(rng: random.Random, text: str, corpus: Corpus) -> str:
    sym = re.compile(r'(?<=[\[ ])"[^"\n.]*"(?=[,\]])')
    return _replaced(rng, text, sym, lambda _: f'"{rng.choice(SYMBOLS)}"')


def _other_encoding(rng: random.Random, text: str, corpus: Corpus) -> str:
    new = ("", ', {sym = ["n"]}', ', {vdevice = "cpu:0"}', ", {sym = 3}", ', {sym = ["n"], more = 1}', ', "n"', ", {}", ", []")
    return _replaced(rng, text, re.compile(r", \{sym = \[[^\]]*\][^{}]*\}|(?<=[fi]\d\d)(?=>)"), lambda _: rng.choice(new))


def _other_name(rng: random.Random, text: str, corpus: Corpus) -> str:
    new = ("x", "w", "", "a b", "a/b", "../x", "\\00", "\\F0\\9F", "x" * 3000, "weight1", "output0")
    return _replaced(rng, text, re.compile(r'(?<=relax\.name = )"[^"\n]*"'), lambda _: f'"{rng.choice(new)}"')


def _other_num_input(rng: random.Random, text: str, corpus: Corpus) -> str:
    return _replaced(
        rng, text, re.compile(r"(?<=relax\.num_input = )-?\d+"), lambda _: rng.choice(("0", "1", "2", "3", *NUMBERS))
    )


def _copy_line(rng: random.Random, text: str, corpus: Corpus) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "\n".join(lines)


def _drop_line(rng: random.Random, text: str, corpus: Corpus) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def _move_line(rng: random.Random, text: str, corpus: Corpus) -> str:
    lines = text.split("\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def _splice(rng: random.Random, text: str, corpus: Corpus) -> str:
    """The lines of one module up to somewhere, and those of another from somewhere on; or both after each other."""
    other = rng.choice(corpus.inputs)
    if rng.random() < 0.5:
        return text + "\n" + re.sub(r"@(\w+)", r"@\1_s", other)
    first, second = text.split("\n"), other.split("\n")
    return "\n".join([*first[: rng.randrange(len(first) + 1)], *second[rng.randrange(len(second)) :]])


#: Attributes of each kind that MLIR's builtin dialect and those of its passes have, or that have none.
FOREIGN = """
array<ui64: 1>
array<i16: 1, 2>
array<f16: 1.0>
array<i1>
dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>
dense<1> : tensor<2xi300>
dense<1> : vector<4xindex>
dense<1.0> : tensor<2xf8E4M3FN>
dense<"a"> : tensor<1x!relax.object>
sparse<0, 1> : tensor<4xi64>
dense_resource<x> : tensor<1xi64>
strided<[1, ?], offset: 2>
affine_map<(d0) -> (d0)>
affine_set<(d0) : (d0 >= 0)>
distinct[0]<1>
loc(unknown)
loc(fused["a", "b"])
loc(callsite("a" at "b"))
unit
f8E4M3FN
!relax.object
tuple<i32>
() -> ()
memref<?xf32, strided<[?], offset: ?>, 3>
1.0 : f8E5M2
1 : i300
-1 : index
1 : ui8
0x7FC00000 : f32
@a::@b
[array<ui8: 1>]
{a = {b = [unit]}}
#arith.fastmath<fast>
#linalg.iterator_type<parallel>
#vector.kind<add>
#unknown.x<1>
!unknown.y
""".strip().splitlines()

MUTATIONS: tuple[Mutation, ...] = (
    _replace_token, _drop_token, _swap_tokens, _odd_number, _other_type, _other_dimension, _other_rank, _other_dtype, _other_op,
    _other_attribute, _other_attribute, _foreign_attribute, _other_symbol, _other_encoding, _other_name, _other_num_input,
    _copy_line, _drop_line, _move_line, _splice,
)  # fmt: skip


@functools.cache
def _corpus() -> Corpus:
    """Of the lit tests, piece by piece: most mutants then differ from a valid module in one place. Imports every pass.

    Passes behind ``relax-to-linalg`` take what the ones before them make, and nothing else.
    """
    register_passes()
    files = (path.read_text() for path in sorted(ROOT.rglob("*.mlir")))
    classes = dict(registered())  # imports every pass now, not in each fork
    ours = [n for n, cls in classes.items() if cls.__module__.startswith("relaxir.dialect.") or n == "relax-to-linalg"]
    return Corpus((piece for text in files for piece in re.split(r"(?m)^// -----.*$", text)), [*sorted(ours), *UPSTREAM])


def mutant(seed: int) -> tuple[str, list[str]]:
    """A module with one to three changes, and none to two passes to run on it."""
    rng, corpus = random.Random(seed), _corpus()
    text = re.sub(r"(?m)^\s*//.*\n", "", rng.choice(corpus.inputs))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(MUTATIONS)(rng, text, corpus)
    return text, rng.sample(corpus.passes, rng.choice((0, 0, 1, 2)))
