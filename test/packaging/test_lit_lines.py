"""Lit tests can be read side by side: MLIR is wrapped between tokens, CHECK lines by CHECK-SAME, RUN lines by a backslash."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
COLUMNS = 120
#: One expected message is one line, however long its text is.
EXPECTATION = re.compile(r"\s*// expected-(error|warning|note|remark) ?(@[+-]\d+ )?{{.*}}$")


def test_lines_are_short() -> None:
    found, files = list[str](), sorted(p for p in TESTS.rglob("*.mlir") if "golden" not in p.parts)
    assert len(files) > 150
    for path in files:
        lines = enumerate(path.read_text().splitlines(), 1)
        long = (number for number, line in lines if len(line) > COLUMNS and not EXPECTATION.match(line))
        found += [f"{path.relative_to(TESTS)}:{number}" for number in long]
    assert found == []
