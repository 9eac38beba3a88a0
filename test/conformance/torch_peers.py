"""Random samples of operators and models of PyTorch, by relaxir, and by IREE's and TVM's importers of torch.export's programs.

    .venv/bin/python test/conformance/torch_peers.py {operators,transformers,torchvision} --peers-python peers-venv/bin/python

Cases are those of ``operators.py --core`` (in f32 and int64), ``transformers_models.py`` and ``image_models.py``, in known
sizes: each is exported once and saved, with inputs and PyTorch's results; what torch.export does not take does not count. Each
peer reads the same files, in a process of its own, which is started again behind a case that ended it or took too long.
``--keep FILE`` takes what is there already, and adds a line per case and peer. The peers are in a venv of their own:

    python3 -m venv peers-venv
    peers-venv/bin/pip install torch==2.13.0 transformers==5.24.0
    peers-venv/bin/pip install apache-tvm iree-base-compiler iree-base-runtime iree-turbine
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from first_of_equal import FirstOfEqual
from model_runs import SIZES, confine, unlike
from peer_process import PeerProcess
from preload import preload
from torch.utils import _pytree as pytree
from torch_runners import PEERS

#: Seconds until a process is ready, and for a case: the processor may have others to serve.
_START, _PATIENCE = 120, 300

#: Samples of each OpInfo and dtype, as operators.py has them.
_SAMPLES = 4

Called = tuple[torch.nn.Module, Sequence[torch.Tensor]]


class _Leaves(torch.nn.Module):
    """A sample of an operator whose results are a list."""

    def __init__(self, sample: torch.nn.Module):
        super().__init__()
        self.sample = sample

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        return pytree.tree_leaves(self.sample(*tensors))


def _operator_names() -> list[str]:
    """``name|variant|dtype|number`` of samples; which of the numbers there are turns out later."""
    from core_operators import ELSEWHERE, core_operators, infos_of

    infos = {(i.name, i.variant_test_name): i for o in core_operators() if o not in ELSEWHERE for i in infos_of(o)}
    dtypes = (torch.float32, torch.int64)
    pairs = [(*key, d) for key, i in infos.items() for d in dtypes if d in i.supported_dtypes("cpu")]
    return [f"{name}|{variant}|{dtype}|{i}" for name, variant, dtype in pairs for i in range(_SAMPLES)]


def _operator(name: str) -> Called:
    from outlined_operators import Sample
    from torch.testing._internal.common_methods_invocations import op_db

    operator, variant, dtype, number = name.split("|")
    info = next(o for o in op_db if (o.name, o.variant_test_name) == (operator, variant))
    torch.manual_seed(0)
    samples = info.sample_inputs("cpu", getattr(torch, dtype.removeprefix("torch.")), requires_grad=False)
    sample = Sample(info.get_op(), list(samples)[int(number)])
    return _Leaves(sample).eval(), sample.tensors


def _transformers_names() -> list[str]:
    from tiny_models import architectures

    return architectures()


def _transformers(name: str) -> Called:
    from transformers_models import runnable

    case = runnable(name)
    return case.called, tuple((case.inputs(*SIZES[0]) or {}).values())


def _torchvision_names() -> list[str]:
    from image_models import torchvision_names

    return torchvision_names()


def _torchvision(name: str) -> Called:
    from image_models import torchvision_case

    case = torchvision_case(name)
    return case.called, tuple((case.inputs(*SIZES[0]) or {}).values())


SUITES: dict[str, tuple[Callable[[], list[str]], Callable[[str], Called]]] = {
    "operators": (_operator_names, _operator),
    "transformers": (_transformers_names, _transformers),
    "torchvision": (_torchvision_names, _torchvision),
}


def _make(build: Callable[[str], Called], name: str, folder: Path) -> None:
    """Writes a case, in this process; nothing where there is none."""
    confine()
    with torch.no_grad():
        called, inputs = build(name)
        wanted = called(*(t.clone() for t in inputs))
        with FirstOfEqual():
            other = called(*(t.clone() for t in inputs))
        if not all(isinstance(x, torch.Tensor) and not x.is_complex() for x in wanted) or unlike(wanted, called(*inputs)):
            return
        program = torch.export.export(called, tuple(inputs))
    torch.save(list(inputs), folder / "inputs.pt")
    torch.save([[t.clone() for t in results] for results in (wanted, other)], folder / "wanted.pt")
    torch.export.save(program, folder / "unfinished.pt2")
    (folder / "unfinished.pt2").rename(folder / "program.pt2")


def made(build: Callable[[str], Called], name: str, folder: Path) -> bool:
    """Whether there is such a case; made in a process of its own."""
    child: Any = get_context("fork").Process(target=_make, args=(build, name, folder))
    child.start()
    child.join()
    return (folder / "program.pt2").exists()


def judged(peer: str, folder: Path) -> tuple[str, str]:
    """``right`` or ``wrong`` and why. Results may be narrower or wider than PyTorch's: others are strict with relaxir."""
    got = torch.load(folder / f"{peer}.pt")
    reasons: list[str] = []
    for wanted in torch.load(folder / "wanted.pt"):
        pairs = zip(got, wanted, strict=False)
        cast = [g.to(w.dtype) if g.is_floating_point() == w.is_floating_point() else g for g, w in pairs]
        reasons.append(unlike(wanted, cast))
    return ("right", "") if "" in reasons else ("wrong", reasons[0])


def outcomes(
    suite: str, names: Sequence[str], count: int, peers: dict[str, PeerProcess], keep: Path
) -> dict[str, dict[str, str]]:
    """Of so many cases what each peer makes of them."""
    lines = [json.loads(line) for line in keep.read_text().splitlines()] if keep.exists() else []
    kept: dict[str, dict[str, str]] = {}
    for line in lines:
        kept.setdefault(line["case"], {})[line["peer"]] = line["outcome"]
    found: dict[str, dict[str, str]] = {}
    with keep.open("a") as file:
        for name in names:
            if len(found) == count:
                break
            row = kept.get(name, {})
            if "none" not in row and not peers.keys() <= row.keys():
                for peer, kind, why in _asked(suite, name, {p: x for p, x in peers.items() if p not in row}):
                    row[peer] = kind
                    print(json.dumps({"case": name, "peer": peer, "outcome": kind, "why": why}), file=file, flush=True)
            if "none" not in row:
                found[name] = row
    return found


def _asked(suite: str, name: str, peers: dict[str, PeerProcess]) -> list[tuple[str, str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="torch-peers-"))
    try:
        if not made(SUITES[suite][1], name, folder):
            return [("none", "none", "no case")]
        found: list[tuple[str, str, str]] = []
        for peer, process in peers.items():
            kind, why = process.ask(str(folder))
            found.append((peer, *(judged(peer, folder) if kind == "ran" else (kind, why))))
        return found
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--sample", type=int, default=100, help="so many cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--peers-python", default=sys.executable, help="the interpreter that has the peers")
    parser.add_argument("--keep", type=Path, default=Path("build/torch_peers.jsonl"), help="file of what was found")
    options = parser.parse_args()
    names = SUITES[options.suite][0]()
    random.Random(options.seed).shuffle(names)
    options.keep.parent.mkdir(parents=True, exist_ok=True)
    preload()
    os.environ.update(RELAXIR_NUM_THREADS="1", OMP_NUM_THREADS="1", TVM_NUM_THREADS="1", RELAXIR_CACHE_DIR="off")
    script = str(Path(__file__).with_name("torch_runners.py"))
    pythons = {p: sys.executable if p == "relaxir" else options.peers_python for p in options.peers}
    peers = {p: PeerProcess([python, script, p], _START, _PATIENCE) for p, python in pythons.items()}
    found = outcomes(options.suite, names, options.sample, peers, options.keep)
    for process in peers.values():
        process.close()
    kinds = ("right", "wrong", "refused", "died", "late")
    print(f"{len(found)} cases  " + "".join(f"{k:>10s}" for k in kinds))
    for peer in peers:
        counts = Counter(row[peer] for row in found.values())
        print(f"{peer:10s}" + "".join(f"{counts[k]:10d}" for k in kinds))


if __name__ == "__main__":
    main()
