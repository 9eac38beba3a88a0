"""Prints how many of torch's OpInfo samples of each operator run right: imported, compiled, called, compared with eager torch.

    .venv/bin/pip install expecttest            # torch's OpInfo samples need it
    .venv/bin/python test/conformance/operators.py [--samples N] [--symbolic] [OPINFO NAME ...]

A line per operator: samples that are right, refused and wrong, and the first reason. Samples that torch.export does not take,
or whose results are random or complex, do not count. Nothing may be wrong. All operators take an hour of one core.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from outlined_operators import DTYPES, LIMIT, Sample, difference, run
from torch.export import Dim
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import relaxir

#: What no compiler reproduces: memory that was not written, random numbers.
_LEFT_OUT = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "bernoulli",
    "multinomial",
}


def outcome(sample: Sample, symbolic: bool) -> tuple[str, str]:
    """``right``, ``refused`` or ``wrong`` and why; ``""`` when torch.export does not take it."""
    dims = tuple({i: Dim.AUTO for i, size in enumerate(t.shape) if size > 1} for t in sample.tensors)
    with torch.no_grad():
        try:
            wanted = sample(*[t.clone() for t in sample.tensors])
            program = torch.export.export(sample.eval(), sample.tensors, dynamic_shapes=(dims,) if symbolic else None)
        except Exception:
            return "", ""
        if any(isinstance(x, torch.Tensor) and x.is_complex() for x in pytree.tree_leaves(wanted)):
            return "", ""
        try:
            found = difference(wanted, run(relaxir.from_torch(program), program, sample.tensors))
        except relaxir.RelaxError as error:
            return "refused", str(error)
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {error}"
    return ("wrong" if found else "right"), found


def go_through(position: int, count: int, symbolic: bool, path: str) -> None:
    """One OpInfo, in this process; a line of JSON for each sample."""
    import logging
    import os
    import signal
    import warnings

    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    op = op_db[position]
    with Path(path).open("a") as out:
        for dtype, _, _ in DTYPES:
            if dtype not in op.supported_dtypes("cpu") or (dtype not in (torch.float32, torch.bfloat16, torch.int64)):
                continue
            torch.manual_seed(0)
            for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
                if i >= count:
                    break
                signal.alarm(LIMIT)
                print(json.dumps(outcome(Sample(op.get_op(), sample), symbolic)), file=out, flush=True)
                signal.alarm(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=4, help="of each dtype")
    parser.add_argument("--symbolic", action="store_true", help="with sizes that are not known when compiled")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    for position, op in enumerate(op_db):
        if (arguments.names and op.name not in arguments.names) or op.name in _LEFT_OUT or "rand" in op.name:
            continue
        with tempfile.NamedTemporaryFile("r") as file:
            child: Any = get_context("fork").Process(
                target=go_through, args=(position, arguments.samples, arguments.symbolic, file.name)
            )
            child.start()
            child.join()
            lines = [tuple(json.loads(line)) for line in file]
        counts = Counter(kind for kind, _ in lines if kind)
        counts["died"] = int(child.exitcode != 0)
        reason = next((why for kind, why in lines if kind in ("wrong", "refused")), "").strip().replace("\n", " ")
        total.update(counts)
        if sum(counts.values()):
            name = f"{op.name} {op.variant_test_name}".strip()
            numbers = " ".join(f"{counts[k]:4}" for k in ("right", "refused", "wrong", "died"))
            print(f"{name:40} {numbers}  {reason[:200]}", flush=True)
    print(f"{'all':40} " + " ".join(f"{total[k]:4}" for k in ("right", "refused", "wrong", "died")))


if __name__ == "__main__":
    main()
