"""Kernels of every target on sizes around the edges of its tiles, against the reference semantics.

Targets of one kind of register share the families of functions. Of each family there is a static function, whose sizes go on
from target to target, and one with symbols that is called with many. Code for other processors than this one is emulated.
``RELAXIR_SWEEP=<n>`` gives every target every family, n times with other sizes and dtypes; ``.ci/run`` does with 1.
"""

from __future__ import annotations

import os

import pytest

import relaxir as rx
from relaxir.lowering.target import TARGETS, Target
from support.emulation import compile_for
from support.sweep import FAMILIES, SIZES, Family, Function, check, module_of, triples

MORE = int(os.environ.get("RELAXIR_SWEEP", "0"))
NAMES = list(TARGETS)


def families_for(name: str) -> list[tuple[int, Family]]:
    """The share of a target among those with equal registers, numbered; all of them where there is time."""
    shape = [Target.parse(f"cpu:{n}").matmul_tile for n in NAMES]
    alike = [n for n, s in zip(NAMES, shape, strict=True) if s == shape[NAMES.index(name)]]
    every = list(enumerate(FAMILIES))
    return every if MORE else every[alike.index(name) :: len(alike)]


def functions_for(name: str, part: int) -> list[Function]:
    """A static function of each family, and one with symbols; parts and targets go through sizes and dtypes."""
    found, place = list[Function](), part * len(NAMES) + NAMES.index(name)
    for number, family in families_for(name):
        fitting = (t for t in triples((place * 37 + number * 5) % len(SIZES) ** 2) if t[0] * t[1] * t[2] <= family.limit)
        dtypes = family.dtypes
        found.append(Function(family, dtypes[(place + number) % len(dtypes)], next(fitting)))
        if family.dynamic:
            found.append(Function(family, dtypes[(place + number + 1) % len(dtypes)], next(fitting), family.dynamic))
    return found


@pytest.mark.parametrize("part", range(max(1, MORE)))
@pytest.mark.parametrize("name", NAMES)
def test_results_are_the_reference_semantics(name: str, part: int) -> None:
    functions = functions_for(name, part)
    module = module_of(functions)
    dynamic = list(triples(21 * (NAMES.index(name) + part), 21))
    failures = check(module, compile_for(module, name), functions, dynamic)
    assert not failures, "\n".join(failures)


def test_sizes_are_combined_pairwise() -> None:
    every = list(triples())
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert len({(t[i], t[j]) for t in every}) == len(SIZES) ** 2


def test_every_kind_of_register_meets_every_family() -> None:
    kinds = {Target.parse(f"cpu:{n}").matmul_tile: set[str]() for n in NAMES}
    for name in NAMES:
        kinds[Target.parse(f"cpu:{name}").matmul_tile].update(f.name for _, f in families_for(name))
    assert all(found == {f.name for f in FAMILIES} for found in kinds.values())


def test_narrow_sums_that_no_registers_hold() -> None:
    """Of one product each, or a single one: they were in memory of a kernel, which has none."""
    by_name = {f.name: f for f in FAMILIES}
    sizes = [(31, 33, 1), (1, 1, 37), (1, 1, 1)]
    functions = [Function(by_name[name], "bf16", s) for name in ("packed", "inputs") for s in sizes]
    functions.append(Function(by_name["packed"], "f16", (5, 63, 1), "m"))
    module = module_of(functions)
    assert not check(module, rx.compile(module), functions, [(2, 63, 1)])
