"""The manifest says how prepared weights are packed, and that is how they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.reference.packed import packed, unpacked
from relaxir.lowering.manifest import Manifest
from support.integer_products import CASES, INTEGER_PIPELINE, module_of


@pytest.mark.parametrize("passes", [None, INTEGER_PIPELINE], ids=["floats", "integers"])
def test_quantized_weights_are_packed_as_their_manifest_says(passes: str | None) -> None:
    cases = [case for case in CASES if case.dtype.endswith("i4") or passes is not None]
    module, held = module_of(cases)
    executable = rx.compile(module, pipeline=passes, cache=False)
    weights = executable.prepare({k: v for own in held.values() for k, v in own.items()})
    seen = set[str]()
    for (name, raw), case in zip(held.items(), cases, strict=True):
        (spec,) = (w for w in executable.manifest.prepared_weights.values() if w.name.startswith(f"{name}.q"))
        assert spec.layout is not None
        seen.add(str(spec.layout).partition(",")[2])
        stored = unpacked(weights[spec.name], spec.layout, case.n)[: case.k].astype(np.int64)
        np.testing.assert_array_equal(stored - spec.layout.offset, raw[f"{name}.q"].T.astype(np.int64))
    assert len(seen) > 1


def test_weights_of_floats() -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x, w, b = builder.input("x", (4, 24)), builder.weight("w", (24, 40), "f32"), builder.weight("b", (40,), "f32")
        builder.output(builder.add(builder.matmul(x, w), b))
    executable = rx.compile(builder.build(), cache=False)
    specs = executable.manifest.prepared_weights
    w = np.random.default_rng(0).standard_normal((24, 40), np.float32)
    weights = executable.prepare({"w": w, "b": np.zeros(40, np.float32)})
    layout = specs["w.pack_weight"].layout
    assert layout is not None
    np.testing.assert_array_equal(weights["w.pack_weight"], packed(w, layout))
    assert specs["b"].layout is None


def test_a_manifest_with_another_layout_is_refused(tmp_path: Path) -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", (4, 24)), builder.weight("w", (24, 40), "f32")
        builder.output(builder.matmul(x, w))
    rx.compile(builder.build(), cache=False).save(tmp_path / "m.relax")
    data = json.loads((tmp_path / "m.relax" / "manifest.json").read_text())
    data["prepared_weights"][0]["layout"] = "tiles"
    with pytest.raises(RelaxError, match=r"prepared_weights\[0\].layout: expected a packed layout such as .*, got 'tiles'"):
        Manifest.of(data)
