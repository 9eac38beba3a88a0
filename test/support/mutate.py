"""Mutates the lit tests' inputs and runs relax-opt on them, each in a fork: only exit codes 0 and 1 are right.

    python test/support/mutate.py SEED COUNT        prints one line per failure and leaves its input in the current folder

Neither a traceback nor a crash in C++ is an answer to input that a user can write.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from relaxir.dialect.pass_manager import registered
from relaxir.lowering.passes import register_passes
from relaxir.tools.relax_opt import run

ROOT = Path(__file__).resolve().parents[1]
TOKEN = re.compile(r'[%@!#]?[\w.]+|"[^"\n]*"|[^\s\w]')
NUMBERS = ("0", "-1", "1", "2147483648", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "?", "nan")
UPSTREAM = ("canonicalize", "cse", "symbol-dce", "inline")
#: A mutant that takes longer has sent a pass into a loop; the slowest takes a second.
SECONDS = 30

Mutation = Callable[[random.Random, str, list[str]], str]


def _replace_token(rng: random.Random, text: str, tokens: list[str]) -> str:
    return _edited(rng, text, rng.choice(tokens))


def _drop_token(rng: random.Random, text: str, tokens: list[str]) -> str:
    return _edited(rng, text, "")


def _odd_number(rng: random.Random, text: str, tokens: list[str]) -> str:
    return _edited(rng, text, rng.choice(NUMBERS))


def _copy_line(rng: random.Random, text: str, tokens: list[str]) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "\n".join(lines)


def _drop_line(rng: random.Random, text: str, tokens: list[str]) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def _edited(rng: random.Random, text: str, new: str) -> str:
    found = list(TOKEN.finditer(text))
    if not found:
        return text
    at = rng.choice(found)
    return text[: at.start()] + new + text[at.end() :]


MUTATIONS: tuple[Mutation, ...] = (_replace_token, _drop_token, _odd_number, _copy_line, _drop_line)


def main(seed: int, count: int) -> int:
    """Runs ``count`` mutants and returns how many failed."""
    register_passes()
    rng = random.Random(seed)
    # Piece by piece: most mutants then differ from a valid module in one place.
    files = (path.read_text() for path in sorted(ROOT.rglob("*.mlir")))
    inputs = [piece for text in files for piece in re.split(r"(?m)^// -----$", text)]
    tokens = sorted({token for text in inputs for token in TOKEN.findall(text)})
    passes = [*sorted(registered()), *UPSTREAM]
    list(registered().values())  # imports every pass now, not in each fork
    return sum(_fails(rng, rng.choice(inputs), tokens, passes, f"{seed}-{i}.mlir") for i in range(count))


def _fails(rng: random.Random, text: str, tokens: list[str], passes: list[str], name: str) -> bool:
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(MUTATIONS)(rng, text, tokens)
    path = Path(name)
    path.write_text(text)
    flags = ["--allow-unregistered-dialect"] * rng.randint(0, 1) + [f"--{p}" for p in rng.sample(passes, rng.randint(0, 2))]
    status = _forked([str(path), "-o", os.devnull, *flags], path.with_suffix(".log"))
    if status in (0, 1):
        path.unlink()
        path.with_suffix(".log").unlink()
        return False
    last = path.with_suffix(".log").read_text(errors="replace").strip().split("\n")[-1]
    print(f"relax-opt {path} {' '.join(flags)}: {status}: {last}")
    return True


def _forked(argv: list[str], log: Path) -> int | str:
    """The exit code of relax-opt, or the name of the signal that ended it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _child(argv, log)
    _, status = os.waitpid(child, 0)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _child(argv: list[str], log: Path) -> None:
    code = 99
    try:
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        signal.alarm(SECONDS)
        code = run(argv)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]), int(sys.argv[2])), 1))
