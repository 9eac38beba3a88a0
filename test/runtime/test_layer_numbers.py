"""Layers of GPTQ, AWQ and AutoRound with bits and groups of their own, and act-order that a file lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaxir import RelaxError
from relaxir.weights import write_safetensors
from relaxir.weights.formats.encoded import EncodedSource
from relaxir.weights.opening import decoded, open_tensors
from support import encoded_weights as write

EIGHT_BITS = {"bits": 8, "group_size": 48}


def opened(path: Path, method: str, tensors: write.Arrays, **config: Any) -> EncodedSource:
    write_safetensors(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": method, **config}}))
    source = decoded(open_tensors(path))
    assert isinstance(source, EncodedSource)
    return source


def layer(name: str, form: str = "gptq", **how: Any) -> tuple[write.Arrays, np.ndarray]:
    tensors, weight = getattr(write, form)(np.random.default_rng(7), **({"n": 24, "k": 96} | how))
    return {f"{name}{e}": t for e, t in tensors.items()}, weight


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("method", "config"),
    [
        ("gptq", {"dynamic": {"-:m.0": {}, "+:m\\.1$": EIGHT_BITS, "m.2": {"group_size": 48}, "m": {"bits": 3}}}),
        ("auto-round", {"packing_format": "auto_round:auto_gptq",
                        "extra_config": {"m.1": EIGHT_BITS, ".*2$": {"group_size": 48}, "m.0": {"bits": 16}}}),
    ],
)  # fmt: skip
def test_layers_with_numbers_of_their_own(tmp_path: Path, method: str, config: dict[str, Any], version: int) -> None:
    """Groups of 48 and of 64 are two of 96 inputs each."""
    found = {
        "l": layer("l", group=64, version=version),
        "m.1": layer("m.1", bits=8, group=48, version=version, with_index=False),
        "m.2": layer("m.2", group=48, version=version, with_index=False),
    }
    source = opened(
        tmp_path, method, {n: t for ts, _ in found.values() for n, t in ts.items()}, bits=4, group_size=64, **config
    )
    for name, (_, weight) in found.items():
        np.testing.assert_array_equal(source.get(f"{name}.weight"), weight)


def test_groups_of_awq(tmp_path: Path) -> None:
    """Two groups of 48 inputs, of which those that the others have would be two, too."""
    tensors, weight = layer("m.1", "awq", group=48)
    source = opened(tmp_path, "awq", tensors, bits=4, group_size=64, dynamic={"m": {"group_size": 48}})
    np.testing.assert_array_equal(source.get("m.1.weight"), weight)


def test_the_packing_of_awq_by_auto_round(tmp_path: Path) -> None:
    tensors, weight = layer("m.1", "awq")
    source = opened(tmp_path, "auto-round", tensors, bits=4, group_size=32, packing_format="auto_round:auto_awq")
    np.testing.assert_array_equal(source.get("m.1.weight"), weight)


@pytest.mark.parametrize(
    ("method", "form", "config", "message"),
    [
        ("gptq", "gptq", {"dynamic": {"m": {"bits": 3}}},
         "tensor 'm.qweight': expected 4 or 8 bits in the configuration, got 3"),
        ("awq", "awq", {"dynamic": {"m": {"bits": 8}}}, "tensor 'm.qweight': expected 4 bits in the configuration, got 8"),
        ("gptq", "gptq", {"dynamic": {"m": {"bits": "4"}}},
         "quantization_config.dynamic['m'].bits: expected an integer, got '4'"),
        ("gptq", "gptq", {"dynamic": {"m": 4}},
         "quantization_config.dynamic['m']: expected a JSON object, got 4"),
        ("gptq", "gptq", {"dynamic": {"+:(": {}}},
         "quantization_config.dynamic['+:(']: expected a pattern, got '('"),
        ("gptq", "gptq", {"desc_act": True},
         "tensor 'm.g_idx': expected it beside the others of its layer, got none"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, method: str, form: str, config: dict[str, Any], message: str) -> None:
    tensors, _ = layer("m", form)
    tensors.pop("m.g_idx", None)
    with pytest.raises(RelaxError) as caught:
        opened(tmp_path, method, tensors, bits=4, group_size=32, **config)
    assert message in str(caught.value)


@pytest.mark.parametrize("empty", [True, False])
def test_act_order_of_one_group_needs_no_index(tmp_path: Path, empty: bool) -> None:
    tensors, weight = layer("m", group=96, with_index=False)
    tensors |= {"m.g_idx": np.zeros(0, np.int32)} if empty else {}
    source = opened(tmp_path, "gptq", tensors, bits=4, group_size=-1, desc_act=True)
    np.testing.assert_array_equal(source.get("m.weight"), weight)
