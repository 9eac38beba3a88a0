"""Kernels of large models' sizes, as machine code, are those of the table, and none spills registers."""

from __future__ import annotations

import pytest

from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.kernels.products.make_plan import plan_product
from relaxir.lowering.cuda.kernels.products.plan_time import tiling_of
from relaxir.lowering.cuda.kernels.products.shape import FactorShape, ProductShape
from support.device_cases import CASES
from support.kernel_table import lines_of, recorded

_ALL = [(name, target) for name, case in CASES.items() for target in case.targets]


@pytest.mark.parametrize(("name", "target"), _ALL)
def test_kernels_are_those_of_the_table(name: str, target: str) -> None:
    found = lines_of(name, target)
    assert found == recorded()[(name, target)], "a better kernel, or one that is meant so: make kernel-table, and commit it"
    assert not [line for line in found if line.split()[5] != "0"], "registers are spilled"


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
