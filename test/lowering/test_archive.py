"""Archives of object files: what goes in comes out, binutils reads it, and damage is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from relaxir import RelaxError
from relaxir.lowering.archive import archive, members

FILES = {"0.o": b"even", "1.o": b"odd", "12.o": b"", "3.o": bytes(range(255))}


def test_what_goes_in_comes_out() -> None:
    assert members(archive(FILES)) == FILES
    assert members(archive({})) == {}


@pytest.mark.skipif(shutil.which("ar") is None, reason="a check with binutils, which only C compilers bring")
def test_others_read_it(tmp_path: Path) -> None:
    (tmp_path / "x.a").write_bytes(archive(FILES))
    subprocess.run(["ar", "x", "x.a"], cwd=tmp_path, check=True)
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == FILES


def test_damage_is_refused() -> None:
    whole = archive(FILES)
    for end in range(len(whole)):
        try:
            found = members(whole[:end])
        except RelaxError:
            continue
        assert found.items() <= FILES.items(), end
    for damaged in (b"", b"!<arch>", whole.replace(b"`\n", b"``"), whole.replace(b"255 ", b"999 ")):
        with pytest.raises(RelaxError, match="expected an archive of object files, got"):
            members(damaged)
    with pytest.raises(RelaxError, match="at most 15 characters"):
        archive({"a name that is long": b""})
