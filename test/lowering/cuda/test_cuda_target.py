"""CUDA targets by name, and their figures."""

import pytest

from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES, CudaTarget


@pytest.mark.parametrize("name", [*(f"cuda:{a}" for a in ARCHITECTURES), "cuda:sm_80+tf32", "cuda:sm_89+f8"])
def test_a_target_has_the_name_it_was_made_of(name: str):
    target = CudaTarget.parse(name)
    assert target.name == name
    assert target.tf32 == name.endswith("+tf32")


@pytest.mark.parametrize("name", ["cuda", "cuda:", "cuda:sm_75", "cpu:sm_80"])
def test_an_unknown_architecture_is_refused(name: str):
    with pytest.raises(RelaxError, match=r"^expected target 'cuda:' and one of sm_80, .*sm_120a, got '" + name):
        CudaTarget.parse(name)


def test_a_near_name_is_suggested():
    with pytest.raises(RelaxError, match=r"got 'cuda:sm_90'; did you mean 'cuda:sm_90a'\?"):
        CudaTarget.parse("cuda:sm_90")


def test_an_unknown_feature_is_refused():
    with pytest.raises(RelaxError, match=r"^expected features of tf32, f8 after '\+', got 'fp4' in target 'cuda:sm_90a\+fp4'$"):
        CudaTarget.parse("cuda:sm_90a+fp4")


# What the papers of the parts say: dense, sums in f32, in units of 1e12 operations per second.
@pytest.mark.parametrize(
    ("architecture", "kind", "peak"),
    [
        ("sm_80", "bf16", 312), ("sm_80", "tf32", 156), ("sm_80", "i8", 624), ("sm_86", "bf16", 125), ("sm_89", "bf16", 362),
        ("sm_89", "f8", 733), ("sm_90a", "bf16", 989.4), ("sm_90a", "f8", 1978.9), ("sm_90a", "tf32", 494.7),
        ("sm_100a", "bf16", 2250), ("sm_120a", "bf16", 209.5),
    ],
)  # fmt: skip
def test_rates_give_the_peaks_of_the_parts(architecture: str, kind: str, peak: float):
    a = ARCHITECTURES[architecture]
    assert a.tensor[kind] * a.part.sm_count * a.part.clock / 1e12 == pytest.approx(peak, rel=0.015)


@pytest.mark.parametrize(("architecture", "peak"), [("sm_80", 19.5), ("sm_86", 31.2), ("sm_89", 91.6), ("sm_90a", 62)])
def test_lanes_give_the_peaks_of_f32(architecture: str, peak: float):
    a = ARCHITECTURES[architecture]
    assert 2 * a.f32_lanes * a.part.sm_count * a.part.clock / 1e12 == pytest.approx(peak, rel=0.015)


def test_a_block_fits_a_multiprocessor():
    for a in ARCHITECTURES.values():
        assert a.shared_per_block + 1024 == a.shared_per_sm
        assert a.registers_per_sm >= 256 * 256  # one block of 256 threads with all registers that they may have
