"""Layers of compressed-tensors are read as their schemes say: bits, groups, blocks, zero points; what is unknown is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file

import relaxir as rx
from relaxir import RelaxError
from relaxir.weights.formats.encoded import EncodedSource
from relaxir.weights.opening import decoded, open_tensors
from relaxir.weights.source import read_part
from support import encoded_weights as write

Tensors = dict[str, torch.Tensor]


def group(targets: list[str], **weights: Any) -> dict[str, Any]:
    return {"targets": targets, "weights": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"} | weights}


def folder(path: Path, tensors: Tensors, *groups: dict[str, Any], **others: Any) -> Path:
    save_file({n: t.contiguous() for n, t in tensors.items()}, path / "model.safetensors")
    table = {"quant_method": "compressed-tensors", "config_groups": {f"group_{i}": g for i, g in enumerate(groups)}, **others}
    (path / "config.json").write_text(json.dumps({"quantization_config": table}))
    return path


def opened(path: Path) -> EncodedSource:
    source = decoded(open_tensors(path))
    assert isinstance(source, EncodedSource)
    return source


def assert_reads(path: Path, want: np.ndarray, narrow: bool = True) -> None:
    """Decoded, in parts, and as products read it."""
    source, (n, k) = opened(path), want.shape
    np.testing.assert_array_equal(source.get("l.weight"), want)
    np.testing.assert_array_equal(read_part(source, "l.weight", {0: [(n // 3, n - 1)]}), want[n // 3 : n - 1])
    assert (source.weights["l.weight"].narrow is not None) is narrow
    assert set(source) == {"l.weight"}
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", k)), b.permute_dims(b.weight("l.weight", (n, k)))))
    exe = rx.compile(b.build(), checkpoint=path)
    exe.bind(exe.prepare(path))
    # Each sum has one product that is not zero.
    np.testing.assert_allclose(exe(np.eye(k, dtype=np.float32)).T, want, rtol=1e-6)


def by_library(form: str, tensors: Tensors, **arguments: Any) -> tuple[Tensors, np.ndarray]:
    """A layer that the library packs, and what it makes of that."""
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**arguments), format=form)
    compressor = BaseCompressor.get_value_from_registry(form)
    packed = compressor.compress(dict(tensors), scheme)
    return {f"l.{n}": t for n, t in packed.items()}, compressor.decompress(dict(packed), scheme)["weight"].float().numpy()


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def scales(*shape: int) -> torch.Tensor:
    return random(*shape).abs() * 0.01 + 0.01


BYTES = (random(24, 64) * 50).clamp(-128, 127).to(torch.int8)


@pytest.mark.parametrize("columns", [1, 4])
def test_zero_points_of_bytes(tmp_path: Path, columns: int) -> None:
    how = {"strategy": "channel"} if columns == 1 else {"strategy": "group", "group_size": 16}
    zero = (random(24, columns) * 20).to(torch.int8)
    given = {"weight": random(24, 64) + 0.7, "weight_scale": scales(24, columns), "weight_zero_point": zero}
    tensors, want = by_library("int-quantized", given, num_bits=8, type="int", symmetric=False, **how)
    assert_reads(folder(tmp_path, tensors, group(["Linear"], symmetric=False, **how)), want)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("has_zero", [False, True])
def test_one_scale_for_all_bytes(tmp_path: Path, shape: tuple[int, ...], has_zero: bool) -> None:
    zero = torch.full(shape, 3, dtype=torch.int8)
    given = {"weight": random(24, 64), "weight_scale": torch.full(shape, 0.02)} | (
        {"weight_zero_point": zero} if has_zero else {}
    )
    how = {"strategy": "tensor", "symmetric": not has_zero}
    tensors, want = by_library("int-quantized", given, num_bits=8, type="int", **how)
    assert_reads(folder(tmp_path, tensors, group(["Linear"], **how)), want)


@pytest.mark.parametrize("has_zero", [False, True])
def test_bytes_in_the_order_of_groups(tmp_path: Path, has_zero: bool) -> None:
    index = torch.randperm(64, generator=torch.Generator().manual_seed(1)) // 16
    scale, zero = scales(24, 4), (random(24, 4) * 20).to(torch.int8)
    tensors = {"l.weight": BYTES, "l.weight_scale": scale, "l.weight_g_idx": index.int()}
    tensors |= {"l.weight_zero_point": zero} if has_zero else {}
    want = (BYTES.float() - (zero.float()[:, index] if has_zero else 0)) * scale[:, index]
    how = {"strategy": "group", "group_size": 16, "actorder": "group", "symmetric": not has_zero}
    assert_reads(folder(tmp_path, tensors, group(["Linear"], **how)), want.numpy())


def test_the_last_group_of_bytes_need_not_be_whole(tmp_path: Path) -> None:
    scale = scales(24, 2)
    tensors = {"l.weight": BYTES, "l.weight_scale": scale}
    want = BYTES.float() * scale.repeat_interleave(48, 1)[:, :64]
    assert_reads(folder(tmp_path, tensors, group(["Linear"], strategy="group", group_size=48)), want.numpy())


@pytest.mark.parametrize("block", [[8, 32], [16, 48]])
@pytest.mark.parametrize("form", ["int", "float"])
def test_blocks_are_those_of_the_configuration(tmp_path: Path, form: str, block: list[int]) -> None:
    size = (-(-24 // block[0]), -(-64 // block[1]))
    how = {"strategy": "block", "block_structure": block, "type": form}
    given = {"weight": random(24, 64), "weight_scale": scales(*size)}
    tensors, _ = by_library(f"{form}-quantized", given, num_bits=8, symmetric=True, **how)
    wide = tensors["l.weight_scale"].repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:24, :64]
    want = tensors["l.weight"].float() * wide
    assert_reads(folder(tmp_path, tensors, group(["Linear"], **how)), want.numpy())


def test_floats_in_groups(tmp_path: Path) -> None:
    weight, scale = random(24, 64).to(torch.float8_e4m3fn), scales(24, 4)
    tensors = {"l.weight": weight, "l.weight_scale": scale, "l.weight_zero_point": torch.zeros(24, 4).to(weight.dtype)}
    how = {"type": "float", "strategy": "group", "group_size": 16}
    want = weight.float() * scale.repeat_interleave(16, 1)
    assert_reads(folder(tmp_path, tensors, group(["Linear"], **how)), want.numpy())


@pytest.mark.parametrize(("k", "bits", "size"), [(4, 8, None), (2, 8, None), (4, 4, None), (144, 4, 64)])
def test_bits_and_groups_are_those_of_the_layers_scheme(tmp_path: Path, k: int, bits: int, size: int | None) -> None:
    """Shapes alone would say others: four bits of up to four inputs, groups of 48 inputs."""
    rng = np.random.default_rng(1)
    tensors, want = write.compressed(rng, 24, k, bits=bits, group=size or k, dtype=np.float32)
    how = {"strategy": "channel"} if size is None else {"strategy": "group", "group_size": size}
    groups = [group(["re:other.*"], num_bits=4, group_size=48, strategy="group"), group(["Linear"], num_bits=bits, **how)]
    assert_reads(folder(tmp_path, {f"l{e}": torch.from_numpy(t) for e, t in tensors.items()}, *groups), want)


@pytest.mark.parametrize(
    "groups",
    [
        [group(["Linear"], num_bits=4), group(["l"])],
        [group(["l"]), group(["re:.*"], num_bits=4)],
        [group(["re:l$"]), group(["Linear", "re:m.*"], num_bits=4)],
        [group(["m.weight"]), group(["re:m"], num_bits=8)],
    ],
    ids=["name before class", "name before pattern", "pattern before class", "none that matches, and all alike"],
)
def test_which_group_is_a_layers(tmp_path: Path, groups: list[dict[str, Any]]) -> None:
    tensors, want = write.compressed(np.random.default_rng(1), 24, 3, bits=8, group=3, dtype=np.float32)
    path = folder(tmp_path, {f"l{e}": torch.from_numpy(t) for e, t in tensors.items()}, *groups)
    np.testing.assert_array_equal(opened(path).get("l.weight"), want)


def packed(n: int = 8, k: int = 64, bits: int = 4, size: int = 16) -> Tensors:
    tensors = write.compressed(np.random.default_rng(1), n, k, bits=bits, group=size, dtype=np.float32)[0]
    return {f"l{e}": torch.from_numpy(t) for e, t in tensors.items()}


PLAIN = {"l.weight": BYTES, "l.weight_scale": scales(24, 1)}
FLOATS = {"l.weight": BYTES.float().to(torch.float8_e4m3fn), "l.weight_scale": scales(24, 1)}
IN_GROUPS = {"strategy": "group", "group_size": 16}


@pytest.mark.parametrize(
    ("tensors", "groups", "message"),
    [
        (packed(k=16, bits=8, size=16), [group(["Linear"], num_bits=7)], "'l.weight_packed': expected 4 or 8 bits, got 7"),
        (packed(k=8, size=8), [group(["Linear"], num_bits=3)], "'l.weight_packed': expected 4 or 8 bits, got 3"),
        (packed(), [group(["Linear"], **IN_GROUPS)], "'l.weight_packed': expected [8, 16] (8 bits), got [8, 8]"),
        (packed(k=4, size=4), [], "'l.weight_packed': expected num_bits of this layer in the configuration, as its shape "
         "is that of 4 and 8 bits, got none"),
        (packed(), [group(["Linear"], num_bits=4, strategy="group", group_size=32)],
         "'l.weight_scale': expected groups of 32 of 64 inputs, as the configuration says, got 4"),
        (packed(), [group(["Linear"], num_bits=4)],
         "'l.weight_scale': expected groups of 64 of 64 inputs, as the configuration says, got 4"),
        (packed(k=80, size=32), [group(["A", "B"], num_bits=4, strategy="group", group_size=s) for s in (32, 30)],
         "'l.weight_scale': expected groups of 30 or 32 of 80 inputs, as the configuration says, got which fits both"),
        (packed(), [group(["Linear"], num_bits=4, symmetric=False, **IN_GROUPS)],
         "tensor 'l.weight_zero_point': expected it beside the others of its layer, got none"),
        (PLAIN, [group(["Linear"], symmetric=False)],
         "tensor 'l.weight_zero_point': expected it beside the others of its layer, got none"),
        (PLAIN | {"l.weight_zero_point": torch.zeros(24, 1)}, [group(["Linear"])],
         "tensor 'l.weight_zero_point': expected int8, got f32[24, 1]"),
        (FLOATS | {"l.weight_zero_point": torch.ones(24, 1)}, [group(["Linear"], type="float")],
         "tensor 'l.weight_zero_point': expected zeros beside floats of eight bits, got others"),
        (PLAIN | {"l.weight_global_scale": torch.ones(1)}, [group(["Linear"])],
         "tensor 'l.weight_global_scale': expected beside a quantized weight one out of .weight_packed, .weight_scale, "),
        (FLOATS | {"l.weight_outliers": torch.ones(1)}, [group(["Linear"], type="float")],
         "tensor 'l.weight_outliers': expected beside a quantized weight one out of .weight_packed, .weight_scale, "),
        (FLOATS | {"l.weight_scale_inv": torch.ones(1, 1)}, [],
         "tensor 'l.weight_scale': expected one scale of a weight, got 'l.weight_scale_inv', too"),
        (FLOATS | {"l.weight_scale": scales(2, 2)},
         [group([c], strategy="block", block_structure=[s, 32], type="float") for c, s in (("A", 12), ("B", 13))],
         "tensor 'l.weight_scale': expected blocks of one size, got [2, 2], which fits (12, 32) and (13, 32)"),
        (PLAIN, [group(["Linear"], num_bits="8")],
         "config_groups.group_0.weights.num_bits: expected an integer from 1 to 32, got '8'"),
        (PLAIN, [group(["Linear"], group_size=-2)],
         "config_groups.group_0.weights.group_size: expected an integer from -1, got -2"),
        (PLAIN, [group(["Linear"], block_structure=[3])],
         "config_groups.group_0.weights.block_structure: expected two sizes, got [3]"),
        (PLAIN, [group(["re:("])], "config_groups.group_0.targets: expected a pattern, got 're:('"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, tensors: Tensors, groups: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(RelaxError) as caught:
        opened(folder(tmp_path, tensors, *groups))
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_what_changes_no_weight_is_accepted(tmp_path: Path) -> None:
    """Scales of what inputs, outputs and caches are quantized to, zero points of symmetric layers, groups by position."""
    others = ("input_scale", "input_zero_point", "output_scale", "input_global_scale")
    tensors = PLAIN | {f"l.{n}": torch.ones(1) for n in others} | {"k_scale": torch.ones(1)}
    tensors |= {
        "l.weight_zero_point": torch.zeros(24, 1, dtype=torch.int8),
        "l.weight_g_idx": torch.full((64,), -1, dtype=torch.int32),
    }
    source = opened(folder(tmp_path, tensors, group(["Linear"])))
    np.testing.assert_array_equal(source.get("l.weight"), BYTES.float().numpy() * PLAIN["l.weight_scale"].numpy())


@pytest.mark.parametrize(
    ("place", "is_fused"), [("weight_input", True), ("weight_output", True), ("input", False), ("q_attn", False)]
)
def test_transforms_of_activations_are_refused(tmp_path: Path, place: str, is_fused: bool) -> None:
    use = {"targets": ["Linear"], "location": place, "inverse": False}
    path = folder(
        tmp_path, PLAIN, group(["Linear"]), transform_config={"config_groups": {"R1": {"type": "hadamard", "apply": [use]}}}
    )
    if is_fused:
        assert "l.weight" in opened(path)
        return
    message = (
        rf"transform_config.config_groups.R1.apply: expected transforms that weights have in them \(.*\), got one of '{place}'"
    )
    with pytest.raises(RelaxError, match=message):
        opened(path)


@pytest.mark.parametrize("use", [7, [7], [{}], {"location": "output"}])
def test_transforms_that_say_no_place(tmp_path: Path, use: object) -> None:
    path = folder(tmp_path, PLAIN, group(["Linear"]), transform_config={"config_groups": {"R1": {"apply": use}}})
    with pytest.raises(RelaxError, match=r"transform_config.config_groups.R1.apply: expected transforms that weights have"):
        opened(path)


def test_a_target_that_is_no_list(tmp_path: Path) -> None:
    tensors, want = write.compressed(np.random.default_rng(1), 24, 3, bits=8, group=3, dtype=np.float32)
    groups = group(["Linear"], num_bits=4), group([]) | {"targets": "re:l"}
    path = folder(tmp_path, {f"l{e}": torch.from_numpy(t) for e, t in tensors.items()}, *groups)
    np.testing.assert_array_equal(opened(path).get("l.weight"), want)


def test_old_files_spell_blocks_as_text(tmp_path: Path) -> None:
    tensors = {"l.weight": BYTES, "l.weight_scale": scales(3, 2)}
    want = BYTES.float() * tensors["l.weight_scale"].repeat_interleave(8, 0).repeat_interleave(32, 1)
    assert_reads(folder(tmp_path, tensors, group(["Linear"], strategy="block", block_structure="8x32")), want.numpy())
