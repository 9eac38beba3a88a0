"""The README of this folder maps behaviours of others to tests; here: those tests exist, and the dialect's lists every pass."""

from __future__ import annotations

import re
from pathlib import Path

from relaxir.dialect.passes import manager

FOLDER = Path(__file__).parent
README = (FOLDER / "README.md").read_text()
#: A file in backquotes, and the tests in it that follow, up to the next file.
FILES = re.compile(r"`([\w./-]+\.(?:mlir|py))`([^`|\n]*)")


def references() -> list[tuple[str, str]]:
    """File and test of each reference in the tables."""
    rows = "\n".join(line for line in README.splitlines() if line.startswith("| "))
    return [(file, name) for file, names in FILES.findall(rows) for name in re.findall(r"@\w+|test_\w+", names)]


def test_every_test_that_is_named_exists():
    missing = [
        f"{file} {name}"
        for file, name in references()
        if not re.search(rf"{'def ' if name.startswith('test') else ''}{name}\(", (FOLDER / file).read_text())
    ]
    assert not missing, missing
    assert len(references()) > 120


def test_every_failure_of_tvm_has_its_row():
    rows = re.findall(r"^\| F(\d+) \| [^|]+ \| ([^|]+) \|$", README, flags=re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 24))
    assert all(FILES.search(tests) for _, tests in rows)


def test_the_list_of_passes_is_complete():
    text = (FOLDER.parents[1] / "dialect" / "README.md").read_text()
    listed = re.findall(r"^\| `(relax-[\w-]+)` \| \S", text, flags=re.M)
    ours = [n for n, cls in manager.registered().items() if cls.__module__.startswith("relaxir.dialect.transforms")]
    assert sorted(listed) == sorted(ours)
