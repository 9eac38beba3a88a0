"""Elementwise functions imported from PyTorch, compiled, on numbers and edges: against extended precision, or torch itself.

The table of ops in ``support/elementwise.py`` says what an op gives; where torch and IEEE disagree, it says what torch does. So
that this stays true, torch's own results are held to its special values, too. f32 has all functions, the other dtypes a third
each; ``RELAXIR_NUMBERS=<n>`` gives every dtype all of them, and n times as many numbers.
"""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402
from support.elementwise import NUMBERS  # noqa: E402
from support.exact import exact  # noqa: E402
from support.number_grid import grid, pairs  # noqa: E402
from support.torch_numbers import BINARY, UNARY, whats_wrong  # noqa: E402

MORE = int(os.environ.get("RELAXIR_NUMBERS", "0"))
DTYPES = ["f32", "f64", "bf16", "f16"]

#: torch's own results that are not the function's value, by what they are.
ODD = {
    "erf": "torch rounds small numbers to 0 in bf16 and f16",
    "fmod": "torch has NaN where the quotient is huge",
    "remainder": "torch has NaN where the quotient is huge",
    "gelu": "torch has NaN of infinity on processors where oneDNN computes it, and 0 where 1 + erf cancels",
    "gelu_tanh": "torch has 0 where 1 + tanh cancels",
    "maximum": "torch takes either of two zeros",
    "minimum": "torch takes either of two zeros",
}

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")


class Functions(torch.nn.Module):
    """All of them at once."""

    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, *args):
        return [case.function(*args) for case in self.table.values()]


def to_torch(x):
    return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if x.dtype == ml_dtypes.bfloat16 else torch.from_numpy(x)


def to_numpy(t):
    return t.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if t.dtype == torch.bfloat16 else t.numpy()


def share(table, dtype):
    names = list(table) if MORE or dtype == "f32" else list(table)[DTYPES.index(dtype) % 3 :: 3]
    return {name: table[name] for name in names}


def run(table, operands):
    """Results of the imported functions, by name."""
    arguments = tuple(to_torch(x) for x in operands)
    with models.quiet():
        program = torch.export.export(Functions(table), arguments)
    executable = rx.compile(rx.from_torch(program), cache=False)
    results = executable(*arguments)
    return dict(zip(table, map(to_numpy, results), strict=True))


@pytest.mark.parametrize("kind", ["unary", "binary"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_imported_numbers(dtype, kind):
    count = 400 * max(1, MORE)
    table = share(UNARY if kind == "unary" else BINARY, dtype)
    operands = [grid(dtype, 3, count)] if kind == "unary" else list(pairs(dtype, 3, count))
    results, found = run(table, operands), []
    for name, case in table.items():
        eager = to_numpy(case.function(*map(to_torch, operands)))
        double = to_numpy(case.function(*(to_torch(x).double() for x in operands)))
        found.append(whats_wrong(f"{name} of {dtype}", case, operands, results[name], eager, double))
        if case.op and name not in ODD:
            found.append(special_values(f"torch's {name} of {dtype}", operands, results[name], eager))
    assert not any(found), "\n".join(line for line in found if line is not None)


def special_values(name, operands, got, eager):
    """Where one result is NaN, infinite or zero and torch's is not, of operands that are 0, infinite or NaN."""
    wide = [exact(x) for x in (*operands, got, eager)]
    special = np.logical_or.reduce([~np.isfinite(x) | (x == 0) for x in wide[:-2]])
    ours, theirs = wide[-2:]
    alike = (np.isnan(ours) & np.isnan(theirs)) | ((ours == theirs) & (np.signbit(ours) == np.signbit(theirs)))
    alike |= np.isfinite(ours) & np.isfinite(theirs) & (ours != 0) & (theirs != 0)
    # Results below the normal numbers are zeros on processors with instructions for bf16.
    alike |= (np.abs(ours) < 1.2e-38) & (np.abs(theirs) < 1.2e-38)
    bad = special & ~alike
    at = int(np.argmax(bad))
    return f"{name}: {[x[at] for x in operands]}: {theirs[at]}, got {ours[at]}" if bad.any() else None


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_imported_integers(dtype):
    """Whole quotients, signs of remainders, shifts of any size."""

    def divisor(y):
        """torch refuses 0, and dies of the least integer divided by -1."""
        return torch.where((y == 0) | (y == -1), 3, y)

    table = {
        "add": torch.add, "mul": torch.mul, "sub": torch.sub, "maximum": torch.maximum, "minimum": torch.minimum,
        "abs": lambda x, y: x.abs(), "sign": lambda x, y: x.sign(), "neg": lambda x, y: -x, "square": lambda x, y: x.square(),
        "floor_divide": lambda x, y: x // divisor(y),
        "fmod": lambda x, y: torch.fmod(x, divisor(y)),
        "remainder": lambda x, y: x % divisor(y), "left": lambda x, y: x << y, "right": lambda x, y: x >> y,
        "of_numbers": lambda x, y: (3 << y) + (100 >> y),
        "trunc": lambda x, y: torch.div(x, divisor(y), rounding_mode="trunc"), "pow": lambda x, y: x ** (y & 15),
        "and": lambda x, y: x & y, "not": lambda x, y: ~x, "clamp": lambda x, y: x.clamp(2, 9), "float": lambda x, y: x.float(),
        "less": lambda x, y: x < y, "to_int8": lambda x, y: x.to(torch.int8), "logical": torch.logical_xor,
    }  # fmt: skip

    class Integers(torch.nn.Module):
        def forward(self, x, y):
            return [function(x, y) for function in table.values()]

    operands = tuple(to_torch(x) for x in pairs("i64" if dtype == torch.int64 else "ui8", 0, 300))
    executable = rx.compile(rx.from_torch(torch.export.export(Integers(), operands)), cache=False)
    for name, got, want in zip(table, executable(*operands), Integers()(*operands), strict=True):
        assert torch.equal(got, want), (name, [x[got != want][0].item() for x in (*operands, got, want)])


def test_bounds_have_reasons():
    assert not [name for name, c in {**UNARY, **BINARY}.items() if c.units > 4 and not c.why]
    assert {c.op for c in UNARY.values()} | {c.op for c in BINARY.values()} >= set(NUMBERS) - {"clip", "leaky_relu"} - {"mod"}


@pytest.mark.parametrize("source", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64])
def test_floats_of_eight_bits_at_their_edges(source: torch.dtype) -> None:
    """What is too large is the largest number, infinite or no number, as the installed torch has it."""
    edges = [240.0, 247.0, 248.0, 448.0, 449.0, 464.0, 465.0, 500.0, 57344.0, 61439.0, 61440.0, 65000.0, 0.001, 1e-5, 0.0]
    whole = torch.tensor([*edges, *(-e for e in edges)])
    x = whole.to(source) if source == torch.int64 else torch.cat([whole, torch.tensor([np.inf, -np.inf, np.nan])]).to(source)
    kinds = (torch.float8_e4m3fn, torch.float8_e5m2)

    class Cast(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [x.to(kind).to(torch.float32) for kind in kinds]

    with models.quiet():
        executable = rx.compile(rx.from_torch(torch.export.export(Cast(), (x,))))
    for got, want, kind in zip(executable(x), Cast()(x), kinds, strict=True):
        np.testing.assert_array_equal(got, want.numpy(), err_msg=str(kind))
