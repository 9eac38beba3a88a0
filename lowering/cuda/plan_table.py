"""Plans that were measured, which kernels get instead of those of the cost model: a folder with a file per architecture.

``FOLDER/sm_90a.json``, as ``relaxir tune`` writes it::

    {"version": 1, "architecture": "sm_90a", "plans": [
      {"key": "product rows<=512 columns=4096 depth=4096 batch=1 by=bf16 ...", "plan": "warpgroups=2 tile=128x256x64 ...",
       "seconds": 6.1e-05, "device": "NVIDIA H100 80GB HBM3 (compute capability 9.0)"}]}

``key`` says what decides the plan (:mod:`.kernels.plan_key`), ``plan`` is the line that ``relax.plan`` has on an operation. The
time and the device are for readers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...dialect.errors import RelaxError
from ..json_reader import Reader

__all__ = ["MeasuredPlan", "PlanTable", "digest_of_file", "plan_file"]

_VERSION = 1


@dataclass(frozen=True)
class MeasuredPlan:
    """The best plan of those that were measured.

    Attributes:
        key: what it is for.
        plan: its line.
        seconds: that all launches of it took together.
        device: where.
    """

    key: str
    plan: str
    seconds: float
    device: str

    @staticmethod
    def read(reader: Reader) -> MeasuredPlan:
        seconds = reader.value("seconds")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < float("inf"):
            raise RelaxError(f"{reader.where}.seconds: expected a number of 0 or more, got {seconds!r}")
        return MeasuredPlan(reader.text("key"), reader.text("plan"), seconds, reader.text("device"))


@dataclass(frozen=True)
class PlanTable:
    """The plans of one architecture, by key."""

    architecture: str
    plans: Mapping[str, MeasuredPlan]

    @staticmethod
    def of(architecture: str, plans: Iterable[MeasuredPlan]) -> PlanTable:
        return PlanTable(architecture, {p.key: p for p in plans})

    @staticmethod
    def read(path: str, architecture: str) -> PlanTable:
        """The table of a file.

        Raises:
            RelaxError: it cannot be read, is no such table, or one of another architecture.
        """
        reader = Reader(_json(path), path)
        if reader.value("version") != _VERSION:
            raise RelaxError(f"{path}.version: expected {_VERSION}, got {reader.value('version')!r}")
        if reader.text("architecture") != architecture:
            raise RelaxError(f"{path}.architecture: expected '{architecture}', got '{reader.text('architecture')}'")
        return PlanTable.of(architecture, reader.records("plans", MeasuredPlan.read))

    def write(self, folder: str) -> str:
        """Adds the plans to those of a folder, which is made where it is not there; the file that has them."""
        path = Path(folder) / f"{self.architecture}.json"
        known = PlanTable.read(str(path), self.architecture).plans if path.is_file() else {}
        plans = [asdict(p) for _, p in sorted({**known, **self.plans}.items())]
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"version": _VERSION, "architecture": self.architecture, "plans": plans}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")
        return str(path)


def _json(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RelaxError(f"cannot read plans of '{path}': {error.strerror}") from None
    except ValueError as error:
        raise RelaxError(f"{path}: expected JSON, got {error}") from None


def plan_file(folder: str, architecture: str) -> str | None:
    """The file of an architecture; None where the folder has none, as nothing was measured.

    Raises:
        RelaxError: there is no such folder, or passes cannot be told of its name.
    """
    if not Path(folder).is_dir():
        raise RelaxError(f"expected a folder with measured plans, got '{folder}'")
    path = str(Path(folder).resolve() / f"{architecture}.json")
    if '"' in path:
        raise RelaxError(f"expected a folder of measured plans without quotes in its name, got '{folder}'")
    return path if Path(path).is_file() else None


def digest_of_file(path: str) -> str:
    """What changes when a file does."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
