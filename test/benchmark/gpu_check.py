"""Numbers and times of a GPU that is there: ``make gpu-check``, in less than eight minutes.

``python test/benchmark/gpu_check.py [--checks 'product*' ...] [--device cuda:0] [--target cuda:sm_90a] [--minutes 8]`` runs
each check in a process of its own, so that a kernel that hangs or a crash costs one line; what no time is left for is listed as
not measured. It needs torch with CUDA and the driver, and exits with 2 where these are not there. ``--device emulated`` runs
the same with small sizes on the emulator: whether the checks work; times say nothing there.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

_TEST = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_TEST))

# Seconds that one check may take, of which compiling and torch.compile are most.
_LIMIT = 100


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", nargs="+", default=["*"], metavar="PATTERN", help="names, or patterns like 'product*'")
    parser.add_argument("--device", default="cuda:0", help="cuda:0, another number, or emulated")
    parser.add_argument("--target", help="what to compile for; the GPU that is there by default")
    parser.add_argument("--minutes", type=float, default=8, help="what is not begun by then is not measured")
    parser.add_argument("--output", type=Path, default=Path("build/gpu-check.json"), help="where figures are kept")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="names of checks, and nothing else")
    return parser


def _one(name: str, device: str, target: str | None) -> int:
    """Runs a check in this process; its lines as JSON."""
    from benchmark.gpu.checks import CHECKS
    from benchmark.gpu.place import Place

    lines = CHECKS[name](Place.named(device, target))
    print(json.dumps([asdict(line) for line in lines]))
    return 0


def _checked(name: str, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """A check in a process of its own: its lines, or why there are none."""
    command = [sys.executable, __file__, "--only", name, "--device", options.device]
    command += ["--target", options.target] if options.target else []
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"check": name, "failed": f"no end after {seconds:.0f} s"}
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return {"check": name, "failed": said[-1] if said else f"ended with {done.returncode}"}
    return {"check": name, "lines": json.loads(done.stdout.splitlines()[-1]), "seconds": time.monotonic() - start}


def _text(found: dict[str, Any]) -> str:
    if "lines" not in found:
        return (
            f"{found['check']:18s} {'FAILED: ' + found['failed'] if 'failed' in found else 'not measured: ' + found['skipped']}"
        )
    return "\n".join(f"{found['check']:18s} {_line(line)}" for line in found["lines"])


def _line(line: dict[str, Any]) -> str:
    ratio, goal = line["ratio"], line["goal"]
    compared = "" if ratio is None else f"  ratio {ratio:.2f}"
    aimed = "" if goal is None or ratio is None else f" (goal {goal}: {'met' if ratio >= goal else 'not met'})"
    return f"{line['what']:34s} {line['found']}{compared}{aimed}"


def main(argv: list[str] | None = None) -> int:
    """Runs what the command line asks for; 1 when a check fails, 2 without a GPU."""
    options = _parser().parse_args(argv)
    if options.only:
        return _one(options.only, options.device, options.target)
    from benchmark.gpu.checks import CHECKS
    from benchmark.gpu.place import no_gpu

    if options.list:
        print("\n".join(CHECKS))
        return 0
    reason = None if options.device == "emulated" else no_gpu()
    if reason is not None:
        print(f"nothing was checked, no figure was measured: {reason}")
        return 2
    names = [name for name in CHECKS if any(fnmatch.fnmatch(name, pattern) for pattern in options.checks)]
    end, results = time.monotonic() + 60 * options.minutes, list[dict[str, Any]]()
    for name in names:
        left = end - time.monotonic()
        found = _checked(name, options, min(left, _LIMIT)) if left > 5 else {"check": name, "skipped": "no time was left"}
        results.append(found)
        print(_text(found), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"device": options.device, "results": results}, indent=1) + "\n")
    failed = [found["check"] for found in results if "failed" in found]
    if options.device == "emulated":
        print("on the emulator: times and ratios say nothing")
    print(f"{len(results) - len(failed)} of {len(results)} checks without a failure; {options.output}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
