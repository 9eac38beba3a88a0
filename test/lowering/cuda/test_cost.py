"""Predicted times: what they follow, and that published measurements are near."""

import dataclasses

import pytest

from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda.cost.instruction_counts import executed, f32_operations
from relaxir.lowering.cuda.cost.kernel_time import KernelWork, LaunchShape, kernel_time
from relaxir.lowering.cuda.cost.occupancy import occupancy
from relaxir.lowering.cuda.cost.product_time import ProductTiling, product_time
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES
from relaxir.lowering.cuda.sass import Instruction

_H100, _A100, _A10 = (ARCHITECTURES[name] for name in ("sm_90a", "sm_80", "sm_86"))
_WGMMA = ProductTiling((128, 256, 64), (8, 1), stages=4, wgmma=True)
_MMA = ProductTiling((128, 128, 32), (2, 2), stages=4)


# What NVIDIA's occupancy calculator says.
@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "blocks", "limit"),
    [
        (_A100, 256, 32, 0, 8, "registers"), (_A100, 256, 33, 0, 6, "registers"), (_A100, 1024, 64, 0, 1, "registers"),
        (_A100, 128, 16, 0, 16, "threads"), (_A100, 32, 16, 0, 32, "blocks"), (_A10, 32, 16, 0, 16, "blocks"),
        (_A100, 128, 32, 48 * 1024, 3, "shared memory"), (_A10, 256, 32, 48 * 1024, 2, "shared memory"),
        (_H100, 384, 168, 200 * 1024, 1, "registers"), (_H100, 128, 168, 113 * 1024, 2, "shared memory"),
    ],
)  # fmt: skip
def test_occupancy(architecture, threads: int, registers: int, shared: int, blocks: int, limit: str):
    found = occupancy(architecture, threads, registers, shared)
    assert (found.blocks, found.limit) == (blocks, limit)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "why"),
    [(1024, 128, 0, "registers"), (128, 32, 100 * 1024, "shared memory"), (2048, 16, 0, "threads")],
)
def test_a_block_that_does_not_fit_is_refused(threads: int, registers: int, shared: int, why: str):
    message = rf"^expected a block that fits a multiprocessor of sm_86, got {threads} threads of .*: too much by {why}$"
    with pytest.raises(RelaxError, match=message):
        occupancy(_A10, threads, registers, shared)


def test_a_copy_takes_nine_tenths_of_the_bandwidth_when_enough_is_in_flight():
    size = 2 * (1 << 30)
    fast = kernel_time(_H100, KernelWork(size), LaunchShape(132 * 8, 256, bytes_in_flight=32))
    assert fast.bound == "memory"
    assert 0.85 < fast.share < 0.9
    few = kernel_time(_H100, KernelWork(size), LaunchShape(132, 128, bytes_in_flight=4))
    assert few.share < 0.1


def test_instructions_may_take_longer_than_memory():
    work, launch = KernelWork(1 << 28), LaunchShape(132 * 64, 256, bytes_in_flight=64)
    warps = launch.blocks * launch.threads / 32
    many = dataclasses.replace(work, instructions=2000 * warps, f32_operations=1000 * warps * 32)
    assert kernel_time(_H100, work, launch).bound == "memory"
    slow = kernel_time(_H100, many, launch)
    assert slow.bound == "instructions"
    assert slow.seconds > 1.5 * kernel_time(_H100, work, launch).seconds
    assert kernel_time(_A100, dataclasses.replace(many, f32_operations=2 * many.f32_operations), launch).bound == "f32"


def test_a_small_kernel_takes_its_start():
    small = kernel_time(_H100, KernelWork(4096), LaunchShape(1, 128))
    assert small.bound == "start"
    assert 2e-6 < small.seconds < 5e-6


# In TFLOP/s: what cost/product_time cites for an H100; of an A100's peak cuBLAS reaches 80 to 90 %.
@pytest.mark.parametrize(
    ("architecture", "size", "tiling", "low", "high"),
    [
        (_A100, 4096, _MMA, 230, 275), (_A100, 8192, _MMA, 240, 285), (_H100, 8192, _WGMMA, 590, 690),
        (_H100, 8192, dataclasses.replace(_WGMMA, cluster=2), 690, 790), (_H100, 8192, _MMA, 400, 600),
    ],
)  # fmt: skip
def test_products_are_near_what_was_measured(architecture, size: int, tiling: ProductTiling, low: float, high: float):
    rate = 2 * size**3 / product_time(architecture, (size, size, size), tiling).seconds / 1e12
    assert low < rate < high


def test_few_rows_are_bound_by_the_weight():
    small = ProductTiling((16, 64, 128), (1, 4), stages=4)
    found = product_time(_A100, (16, 8192, 8192), small)
    assert found.bound == "memory"
    assert found.share > 0.75
    narrow = product_time(_A100, (16, 8192, 8192), small, right_bytes=0.5)
    assert narrow.seconds < 0.6 * found.seconds


def test_a_long_sum_of_a_small_result_is_worth_splitting():
    shape, tiling = (64, 64, 65536), ProductTiling((64, 64, 64), (2, 2), stages=4)
    whole, split = (product_time(_A100, shape, dataclasses.replace(tiling, split=n)).seconds for n in (1, 32))
    assert split < whole / 4


def test_more_stages_hide_more_latency():
    shape, tiling = (256, 256, 8192), ProductTiling((64, 64, 32), (2, 2), stages=2)
    two, four = (product_time(_A100, shape, dataclasses.replace(tiling, stages=n)) for n in (2, 4))
    assert two.bound == four.bound == "latency"
    assert four.seconds < two.seconds / 2


def test_no_product_is_faster_than_its_limit():
    for architecture in (_A100, _A10, _H100):
        for shape in ((1, 1, 1), (17, 4096, 4096), (1024, 1024, 1024), (5000, 3000, 777)):
            assert 0 < product_time(architecture, shape, _MMA).share < 1


def test_a_tile_that_does_not_fit_is_refused():
    with pytest.raises(RelaxError, match="too much by shared memory"):
        product_time(_A10, (128, 128, 128), dataclasses.replace(_MMA, stages=8))


def test_instructions_in_loops_count_as_often_as_these_are_passed():
    kernel = tuple(Instruction(name, at) for name, at in (
        ("LDG.E", ""), ("FADD", ""), ("FFMA", ""), ("BRA", "0x20"), ("BRA", "P0,0x10"), ("EXIT", ""),
    ))  # fmt: skip
    counts = executed(kernel, trips=[10, 4])
    assert counts == {"LDG": 1, "FADD": 10, "FFMA": 40, "BRA": 50, "EXIT": 1}
    assert f32_operations(counts) == 50
    assert executed(kernel)["FFMA"] == 1


def test_8_bit_floats_are_faster_by_less_than_their_peak():
    """Sums are added in f32 after each step, and tiles have half the columns."""
    shape, tiling = (8192, 8192, 8192), dataclasses.replace(_WGMMA, tile=(128, 128, 128))
    narrow, wide = (
        product_time(_H100, shape, tiling, kind="f8", left_bytes=1, right_bytes=1),
        product_time(_H100, shape, _WGMMA),
    )
    assert 1 < wide.seconds / narrow.seconds < 2
    slow = dataclasses.replace(_H100, f32_lanes=8)
    assert product_time(slow, shape, tiling, kind="f8").bound == "sums"
