"""Inputs that a program was exported with by keyword: calls name them, whatever order that call of the export had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.tools import cli

IDS, TYPES, MASK = (torch.tensor([v]) for v in ([1, 2, 3], [0, 0, 1], [1, 1, 0]))


class Tokens(torch.nn.Module):
    """Takes what a tokenizer gives, in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds = torch.nn.Embedding(9, 4), torch.nn.Embedding(2, 4)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None, types: torch.Tensor | None = None) -> torch.Tensor:
        return (self.words(ids) + self.kinds(types)) * mask[..., None]


def exported(*args: torch.Tensor, **kwargs: torch.Tensor) -> tuple[torch.nn.Module, rx.Module]:
    model = Tokens().eval()
    return model, rx.from_torch(torch.export.export(model, args, kwargs))


@pytest.mark.parametrize("positional", [0, 1, 3])
def test_calls_name_what_the_export_named(positional: int, tmp_path: Path) -> None:
    given = {"ids": IDS, "mask": MASK, "types": TYPES}
    args = list(given.values())[:positional]
    keywords = {name: given[name] for name in ("types", "ids", "mask") if name not in list(given)[:positional]}
    model, module = exported(*args, **keywords)
    executable = rx.compile(module)
    executable.bind(executable.prepare(dict(model.state_dict())))
    executable.save(tmp_path / "m.relax")
    loaded = rx.load(tmp_path / "m.relax")
    loaded.bind(loaded.prepare(dict(model.state_dict())))
    want = model(IDS, MASK, TYPES).detach()
    for each in (executable, loaded):
        torch.testing.assert_close(each(**given), want)
        torch.testing.assert_close(each(*args, **keywords), want)
        if positional == 3:
            torch.testing.assert_close(each(IDS, MASK, TYPES), want)
            continue
        for count in range(positional + 1, 4):
            first = next(iter(keywords))
            with pytest.raises(RelaxError, match=f"expected input '{first}' by name, as the program was exported, got it by"):
                each(*(IDS, MASK, TYPES)[:count])


def test_what_a_call_takes_itself_has_no_name() -> None:
    class Step(torch.nn.Module):
        def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
            return x - state

    x, state = torch.ones(3), torch.arange(3.0)
    executable = rx.compile(rx.from_torch(torch.export.export(Step(), (x,), {"state": state})))
    torch.testing.assert_close(executable(x, state), x - state)


def test_keywords_of_states_and_several_programs() -> None:
    class Cached(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
            self.seen += step
            return x - self.seen

    model = Cached()
    given = {"step": torch.ones(3), "x": torch.arange(3.0)}
    module = rx.from_torch({"a": torch.export.export(model, (), given), "b": torch.export.export(model, tuple(given.values()))})
    executable = rx.compile(module)
    state = executable.new_state()
    torch.testing.assert_close(executable(**given, entry="a", state=state), given["x"] - 1)
    torch.testing.assert_close(executable(given["step"], given["x"], entry="b", state=state), given["step"] - given["x"] - 1)
    with pytest.raises(RelaxError, match="expected input 'step' by name"):
        executable(*given.values(), entry="a", state=state)


def test_tools_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    model, module = exported(IDS, types=TYPES, mask=MASK)
    module.save("m.mlir")
    for name, tensor in (("ids", IDS), ("types", TYPES), ("mask", MASK)):
        np.save(f"{name}.npy", tensor.numpy())
    inputs = [part for name in ("mask", "ids", "types") for part in ("--input", f"{name}={name}.npy")]
    rx.save_weights(torch.export.export(model, (IDS,), {"types": TYPES, "mask": MASK}), "w.safetensors")
    assert cli.run(["compile", "m.mlir", "-o", "m.relax"]) == 0
    assert cli.run(["info", "m.relax"]) == 0
    assert "entry main(ids: i64[1, 3], *, types: i64[1, 3], mask: i64[1, 3])" in capsys.readouterr().out
    assert cli.run(["prepare", "m.relax", "w.safetensors", "-o", "p.safetensors"]) == 0
    assert cli.run(["run", "m.relax", "--weights", "p.safetensors", *inputs, "-o", "out.npz"]) == 0
    np.testing.assert_allclose(np.load("out.npz")["output0"], model(IDS, MASK, TYPES).detach().numpy(), rtol=1e-6)
    assert cli.run(["compare", "m.mlir", *inputs, "--weights", "w.safetensors"]) == 0
    assert cli.run(["bench", "m.relax", *inputs, "--weights", "p.safetensors", "--seconds", "0.01"]) == 0
    assert cli.run(["profile", "m.relax", *inputs, "--weights", "p.safetensors", "--seconds", "0.01"]) == 0
