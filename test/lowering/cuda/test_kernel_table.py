"""Kernels of large models' sizes, as machine code, are those of the table, and none spills registers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.kernels.products.make_plan import plan_product
from relaxir.lowering.cuda.kernels.products.plan_time import tiling_of
from relaxir.lowering.cuda.kernels.products.shape import FactorShape, ProductShape
from support.device_cases import CASES, TARGETS, ptx_of
from support.device_kernels import device_kernels, device_kernels_together
from support.kernel_table import lines_of, recorded

_ALL = [(name, target) for name, case in CASES.items() for target in case.targets]


#: Cases that are looked at together; so many that the workers of a run share them.
_TOGETHER = 10


def _batches() -> Iterator[tuple[str, list[str]]]:
    for target in sorted({target for _, target in _ALL}):
        names = [name for name, of in _ALL if of == target]
        yield from ((target, names[start : start + _TOGETHER]) for start in range(0, len(names), _TOGETHER))


@pytest.mark.parametrize(("target", "names"), [pytest.param(t, n, id=f"{t}-{'-'.join(n)}") for t, n in _batches()])
def test_kernels_are_those_of_the_table(target: str, names: list[str]) -> None:
    found = lines_of(names, target)
    wanted = {name: recorded()[(name, target)] for name in names}
    assert found == wanted, "a better kernel, or one that is meant so: make kernel-table, and commit it"
    assert not [line for lines in found.values() for line in lines if line.split()[5] != "0"], "registers are spilled"


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_that_are_looked_at_together_are_those_of_an_image(target: str) -> None:
    texts = [ptx_of(CASES[name], target) for name in ("rms-norm", "product-int4")]
    for text, together in zip(texts, device_kernels_together(texts, target), strict=True):
        alone = device_kernels(text, target)
        assert together.keys() == alone.keys()
        for name, kernel in together.items():
            assert [i.opcode for i in kernel.instructions] == [i.opcode for i in alone[name].instructions]


def test_the_table_has_no_other_cases() -> None:
    assert list(recorded()) == _ALL


@pytest.mark.parametrize(("name", "group"), [("product-int8", 0), ("product-int4", 32), ("product-float8-blocks", 128)])
def test_the_cost_model_knows_registers_of_products_of_narrow_weights(name: str, group: int) -> None:
    """How many blocks a multiprocessor holds follows from them."""
    target = CudaTarget.parse("cuda:sm_80").architecture
    left, right = FactorShape(along_k=True, copy=16), FactorShape(along_k=True, copy=0, is_computed=True)
    shape = ProductShape(4096, 11008, 4096, 1, "bf16", left, right, 8, group=group)
    assumed = tiling_of(plan_product(shape, target), shape, target).registers
    counted = [int(line.split()[3]) for line in recorded()[(name, "cuda:sm_80")]]
    assert assumed == pytest.approx(counted[0], rel=0.1)
