"""``make mutants``: small faults planted at random into passes and verifiers, and how many of them the tests find.

    make mutants COUNT=40 SEED=1 [ONLY=dialect/transforms/precision]

Each is planted into a copy of the package in ``build/mutants``, which is imported instead of this one. Tests run from those
closest to the file outwards until one fails; a test that does not end counts as failed. What survives is printed with its
place: a test is missing, or the fault changes nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzzing.mutations import Mutation, mutations

__all__ = ["PARTS", "main", "stages"]

ROOT = Path(__file__).parents[2]
COPY = ROOT / "build/mutants"
#: Passes, and what verifies: ops' inference, conventions of modules, what is checked of transform functions.
PARTS = ("dialect/transforms", "dialect/ops", "dialect/passes", "dialect/conventions.py", "dialect/transform_rules.py")
#: Seconds after which a stage counts as failed, several times what it takes.
SECONDS = 600


@dataclass(frozen=True)
class Mutant:
    """A fault in a file, which is relative to the repository."""

    path: Path
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.path}:{self.mutation.line}: {self.mutation.kind}"


def main(argv: Sequence[str]) -> int:
    """Plants faults until there were so many; the exit code is 1 when less than so much of them is found."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="the beginning of paths, with commas")
    parser.add_argument("--stages", type=int, default=4, help="how many kinds of tests run: with fewer less is found, sooner")
    parser.add_argument("--floor", type=float, default=0.8, help="the part that has to be found")
    options = parser.parse_args(argv)
    shutil.rmtree(COPY, ignore_errors=True)
    package = _package()
    if _fails([*_LIT, "test/dialect", "test/transforms"]):
        raise SystemExit("expected tests that pass without a fault, got some that fail")
    found, survived = 0, list[Mutant]()
    for mutant in drawn(options.seed, options.count, options.only):
        by = killed(mutant, package, options.stages)
        found += by is not None
        survived += [mutant] if by is None else []
        print(f"{mutant}: {f'found by {by}' if by else 'SURVIVED'}", flush=True)
    count = found + len(survived)
    print(f"{found} of {count} found ({found / max(count, 1):.0%}), seed {options.seed}")
    return int(found < options.floor * count)


def drawn(seed: int, count: int, only: str) -> Iterator[Mutant]:
    """Faults at random; each line of code is as likely as any other."""
    rng, files = random.Random(seed), [p for p in _files() if not only or str(p).startswith(tuple(only.split(",")))]
    sizes = [len((ROOT / p).read_text().splitlines()) for p in files]
    for path in rng.choices(files, sizes, k=count):
        found = list(mutations((ROOT / path).read_text()))
        if found:
            yield Mutant(path, rng.choice(found))


def killed(mutant: Mutant, package: Path, most: int) -> str | None:
    """The tests that find a fault, None when none does."""
    place = package / mutant.path
    original = place.read_text()
    place.write_text(mutant.mutation.text)
    try:
        return next((name for name, command in stages(mutant.path) if name in _KINDS[:most] and _fails(command)), None)
    finally:
        place.write_text(original)


def stages(path: Path) -> list[tuple[str, list[str]]]:
    """Names and commands of tests, those first that are quick and close to a file."""
    python = [sys.executable, "-m"]
    pytest = [*python, "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    own = sorted(str(p) for p in (ROOT / "test").rglob(f"*{path.stem.replace('_', '-')}*.mlir"))
    return [
        *([("its lit tests", [*_LIT, *own])] if own else []),
        ("lit tests", [*_LIT, "test/dialect", "test/transforms"]),
        ("test/dialect", [*pytest, "test/dialect"]),
        ("test/transforms", [*pytest, "test/transforms"]),
    ]


#: Kinds of tests, in their order.
_KINDS = ("its lit tests", "lit tests", "test/dialect", "test/transforms")
_LIT = [str(Path(sys.executable).parent / "lit"), "-q", "-j1", "--max-failures=1"]


def _fails(command: list[str]) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(COPY), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def _package() -> Path:
    """A copy of the package as it is installed; its folder."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python", COPY / "relaxir", ignore=ignored)
    for name in ("dialect", "lowering", "tools"):
        shutil.copytree(ROOT / name, COPY / "relaxir" / name, ignore=ignored)
    return COPY / "relaxir"


def _files() -> list[Path]:
    found = [p for part in PARTS for p in ([ROOT / part] if part.endswith(".py") else sorted((ROOT / part).rglob("*.py")))]
    return [p.relative_to(ROOT) for p in found if p.name != "__init__.py"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
