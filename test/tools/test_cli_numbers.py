"""Numbers on the command line that mean nothing are mistakes of it, by every command that takes them."""

from __future__ import annotations

import pytest

from relaxir.tools import cli


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["compare", "--seed", "-1"], "argument --seed: expected a whole number from 0 on, got '-1'"),
        (["compare", "--tolerance", "nan"], "argument --tolerance: expected a relative error from 0 on, got 'nan'"),
        (["reduce", "--tolerance", "-0.5"], "argument --tolerance: expected a relative error from 0 on, got '-0.5'"),
        (
            ["reduce", "-o", "s.mlir", "--dies", "--pipeline", "nope"],
            "argument --pipeline: expected the name of a pass, got 'nope'",
        ),
        (["reduce", "--seconds", "inf"], "argument --seconds: expected a number of seconds from 0 on, got 'inf'"),
        (["bench", "--seconds", "-3"], "argument --seconds: expected a number of seconds from 0 on, got '-3'"),
        (["bench", "--random", "-1"], "argument --random: expected a whole number from 0 on, got '-1'"),
        (["profile", "--seconds", "nan"], "argument --seconds: expected a number of seconds from 0 on, got 'nan'"),
        (["profile", "--random", "1.5"], "argument --random: expected a whole number from 0 on, got '1.5'"),
        (["tune", "--random", "x"], "argument --random: expected a whole number from 0 on, got 'x'"),
        (["generate", "--seed", "-7"], "argument --seed: expected a whole number from 0 on, got '-7'"),
        (["generate", "--temperature", "-1"], "argument --temperature: expected a temperature from 0 on, got '-1'"),
        (["generate", "--max-new-tokens", "0"], "argument --max-new-tokens: expected a number from 1 on, got '0'"),
        (["run", "--random", "-2"], "argument --random: expected a whole number from 0 on, got '-2'"),
    ],
)
def test_numbers_that_mean_nothing(capsys: pytest.CaptureFixture[str], command: list[str], message: str):
    assert cli.run([*command, "model.mlir"]) == 2
    assert message in capsys.readouterr().err
