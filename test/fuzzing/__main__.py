"""``make fuzz``: random inputs until time is up, what came of them by generator, and an exit code of 1 if anything was found.

make fuzz MINUTES=60                  all generators in turn, on seeds that no run of another second had
make fuzz MINUTES=5 ONLY=texts,headers FROM=0 JOBS=2
make fuzz ONLY=texts SEED=17          one seed again, with all that it printed
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable

# What tests set (conftest.py), before anything that reads it is imported.
os.environ["RELAXIR_CACHE_DIR"] = "off"
for _threads in ("RELAXIR_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

from fuzzing.driver import Tally, fuzz  # noqa: E402
from fuzzing.generators import GENERATORS, Generator  # noqa: E402
from fuzzing.reduction import kind_of, write_reduced  # noqa: E402
from fuzzing.worker import Outcome, outcomes  # noqa: E402
from support.erasures import guard_erasures  # noqa: E402

guard_erasures()


def main(argv: list[str]) -> int:
    """The exit code: 0 when nothing was found, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--only", default="", help="names of generators, with commas")
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--from", type=int, dest="first", help="the first seed of each generator")
    parser.add_argument("--jobs", type=int, default=1, help="generators that run at once")
    options = parser.parse_args(argv)
    names = [n for n in options.only.split(",") if n] or list(GENERATORS)
    unknown = [n for n in names if n not in GENERATORS]
    if unknown:
        parser.error(f"expected generators out of {', '.join(GENERATORS)}, got '{unknown[0]}'")
    chosen = [GENERATORS[n] for n in names]
    if options.seed is not None:
        return int(any([_reproduced(g, options.seed) for g in chosen]))
    # The clock gives seeds that no other run had; they stay small enough to be typed.
    first = int(time.time()) % 10**9 if options.first is None else options.first
    print(f"fuzzing {', '.join(names)} for {options.minutes:g} minutes, from seed {first} on", flush=True)
    tallies = fuzz(chosen, options.minutes * 60, first, options.jobs, _told)
    print("\n".join(map(str, tallies)))
    _reduce({(t.name, kind_of(f)): (GENERATORS[t.name], f) for t in tallies for f in reversed(t.finds)}.values())
    return int(any(t.finds for t in tallies))


def _told(generator: Generator, find: Outcome) -> None:
    print(Tally(generator.name, 0, 0).line(find).strip(), flush=True)


def _reproduced(generator: Generator, seed: int) -> bool:
    """Runs one seed and shows what came out; whether that is a find."""
    (outcome,) = outcomes(generator.check, [seed], generator.seconds)
    print(f"{generator.name}, seed {seed}: {outcome.kind} {outcome.reason}\n{outcome.detail}".strip())
    _reduce([(generator, outcome)] if outcome.is_find else [])
    return outcome.is_find


def _reduce(finds: Iterable[tuple[Generator, Outcome]]) -> None:
    """Writes a small module for each find of a generator that makes modules."""
    for generator, find in finds:
        path = write_reduced(generator, find)
        if path is not None:
            print(f"{generator.name}, seed {find.seed}, reduced: {path}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
