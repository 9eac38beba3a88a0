"""Runs models, each in a process of its own: exported, imported, compiled, called, compared with PyTorch; lines are kept."""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from first_of_equal import FirstOfEqual
from other_rounding import OtherRounding
from preload import preload
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

import relaxir

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from support.address_space import limit_address_space  # noqa: E402

__all__ = ["SIZES", "Case", "Tensors", "confine", "is_stable", "line_of", "main_of", "outcome", "randomize", "unlike"]

#: Seconds of the processor for one model, and bytes that it may map.
LIMIT, MEMORY = 150, 8 << 30

#: Of the largest number of a result: sums in another order, through a few layers.
TOLERANCE = 2e-4

#: Roundings that a model is tried in whose results differ: mm-grounding-dino's scores two units apart change places in 9 of 16.
ROUNDINGS = 16

#: Rows and tokens of the export, and what a program with open sizes is called with, too.
SIZES = ((2, 12), (3, 17), (1, 9))


#: What torchvision registers itself, but in wheels for GPUs beside a torch for CPUs: its import then stumbles over them.
_TORCHVISION = torch.library.Library("torchvision", "FRAGMENT")
try:
    import torchvision  # noqa: F401
except ModuleNotFoundError:
    pass
except RuntimeError:
    for _name in ("nms", "qnms", "roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool", "deform_conv2d"):
        _TORCHVISION.define(f"{_name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")


#: What a model of this name gives (``right`` or what else), with sizes that are known or are not, and why.
Check = Callable[[str, bool], tuple[str, str]]


class Tensors(nn.Module):
    """A model as a function of tensors to tensors."""

    def __init__(self, model: nn.Module, names: Sequence[str]):
        super().__init__()
        self.model, self.names = model, list(names)

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        output = self.model(**dict(zip(self.names, tensors, strict=True)))
        return [x for x in pytree.tree_leaves(_plain(output)) if isinstance(x, torch.Tensor)]


def _plain(output: Any) -> Any:
    return dict(output) if isinstance(output, dict) else output


@dataclass(frozen=True)
class Case:
    """A model that runs in PyTorch.

    Attributes:
        called: the model as a function of tensors.
        inputs: its inputs by name, for so many rows and tokens; None where there are none of that size.
    """

    called: Tensors
    inputs: Callable[[int, int], dict[str, torch.Tensor] | None]


def randomize(model: torch.nn.Module) -> None:
    """Weights as large as their fan-in wants, norms near one, biases and means near zero: nothing hides."""
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.1 * torch.randn(buffer.shape))
            elif name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape))
        for parameter in model.parameters():
            if not parameter.is_floating_point():
                continue
            noise = torch.randn(parameter.shape)
            if parameter.dim() > 1:
                parameter.copy_(noise / max(parameter[0].numel(), 1) ** 0.5)
            else:
                parameter.add_(0.1 * noise.to(parameter.dtype))


def is_stable(called: Tensors, inputs: dict[str, torch.Tensor]) -> bool:
    """Whether a model gives the same twice."""
    return not unlike(*(called(*(t.clone() for t in inputs.values())) for _ in range(2)))


def outcome(build: Callable[[str], Case], name: str, is_open: bool) -> tuple[str, str]:
    """``right``, ``wrong``, ``unstable``, ``refused``, ``failed``, or ``unbuilt`` and ``unexported``; and why."""
    try:
        case = build(name)
    except Exception as error:
        return "unbuilt", line_of(error)
    called, inputs = case.called, case.inputs(*SIZES[0]) or {}
    dims = tuple({i: Dim.AUTO for i in _open_axes(n, t)} for n, t in inputs.items())
    try:
        program = torch.export.export(called, tuple(inputs.values()), dynamic_shapes=(dims,) if is_open else None)
    except Exception as error:
        return "unexported", line_of(error)
    kind = type(called.model).__name__
    try:
        reason = _difference(case, program, SIZES if is_open else SIZES[:1])
    except relaxir.RelaxError as error:
        return "refused", f"{kind}: {error}"
    except Exception as error:
        return "failed", f"{kind}: {line_of(error)}"
    if reason and _is_unstable(case):
        return "unstable", f"{kind}: PyTorch's own results in other rounding are others; {reason}"
    return ("wrong", f"{kind} of {reason}") if reason else ("right", kind)


def _is_unstable(case: Case) -> bool:
    """Whether rounding decides PyTorch's own results: which of nearly equal numbers are the largest, for example.

    It is asked in double precision, and with sums that are rounded otherwise.
    """
    inputs = [t.clone() for t in (case.inputs(*SIZES[0]) or {}).values()]
    wanted = case.called(*inputs)
    for seed in range(ROUNDINGS):
        with OtherRounding(seed):
            other = case.called(*inputs)
        if unlike(wanted, other):
            return True
    try:
        exact = copy.deepcopy(case.called).double()(*(t.double() if t.is_floating_point() else t for t in inputs))
    except Exception:  # a model that mixes precisions
        return False
    return bool(unlike(wanted, [t.to(w.dtype) for t, w in zip(exact, wanted, strict=True)]))


def _difference(case: Case, program: torch.export.ExportedProgram, all_sizes: Sequence[tuple[int, int]]) -> str:
    """How results of some sizes differ, with the sizes; empty where they do not."""
    exe = relaxir.compile(relaxir.from_torch(program), cache=False)
    with tempfile.TemporaryDirectory() as folder:
        relaxir.save_weights(program, f"{folder}/weights.safetensors")
        exe.bind(exe.prepare(f"{folder}/weights.safetensors"))
    ranges = _ranges(program)
    for sizes in all_sizes:
        other = case.inputs(*sizes)
        if other is None or (sizes != SIZES[0] and not all(map(_fits, other.values(), ranges))):
            continue
        try:
            wanted = case.called(*(t.clone() for t in other.values()))
        except Exception:  # sizes that the model itself does not take
            continue
        got = exe(*other.values())
        found = unlike(wanted, got)
        if found:
            with FirstOfEqual():
                wanted = case.called(*(t.clone() for t in other.values()))
            if unlike(wanted, got):
                return f"{sizes}: {found}"
    return ""


def _open_axes(name: str, tensor: torch.Tensor) -> range:
    """Batch, and length of what is no image."""
    is_known = tensor.dim() > 3 or name in ("pixel_values", "input_features", "input_values")
    return range(1) if is_known else range(tensor.dim())


def _ranges(program: Any) -> list[tuple[Any, ...]]:
    """The sizes of inputs in the program; what is a number there is no longer open."""
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    nodes = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
    limits = {str(k): v for k, v in program.range_constraints.items()}
    return [tuple(int(str(d)) if str(d).isdigit() else limits.get(str(d), d) for d in nodes[n].shape) for n in names]


def _fits(tensor: torch.Tensor, limits: tuple[Any, ...]) -> bool:
    """Whether a tensor has sizes that the program takes; of an expression of several nothing is said."""
    pairs = zip(tensor.shape, limits, strict=True)
    return all(n == d if isinstance(d, int) else not hasattr(d, "lower") or d.lower <= n <= d.upper for n, d in pairs)


def unlike(wanted: Sequence[torch.Tensor], got: Any) -> str:
    """How results differ; empty where they do not."""
    found = [torch.as_tensor(x) for x in pytree.tree_leaves(got)]
    if len(found) < len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    for i, (a, b) in enumerate(zip(wanted, found, strict=False)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {i} is {b.dtype}{list(b.shape)}, expected {a.dtype}{list(a.shape)}"
        if not a.is_floating_point():
            if not torch.equal(a, b):
                return f"result {i}: {int((a != b).sum())} of {a.numel()} integers differ"
            continue
        if not torch.equal(a.isfinite(), b.isfinite()):
            return f"result {i}: infinities or NaN elsewhere"
        a, b = (torch.where(t.isfinite(), t, 0).double() for t in (a, b))
        scale, error = float(a.abs().max() if a.numel() else 0), float((a - b).abs().max() if a.numel() else 0)
        if error > TOLERANCE * max(scale, 1e-3):
            return f"result {i}: off by {error:.2g} where the largest is {scale:.2g}"
    return ""


def line_of(error: BaseException) -> str:
    """An error as a line of a list."""
    return f"{type(error).__name__}: {error}"


def confine() -> None:
    """Keeps this process silent, to one thread, and within the limits of a case."""
    import logging
    import signal
    import warnings

    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    limit_address_space(MEMORY)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)


def _go_through(check: Check, name: str, is_open: bool, path: str) -> None:
    """One model, in this process; a line of JSON."""
    confine()
    with torch.no_grad():
        found = check(name, is_open)
    Path(path).write_text(json.dumps(found))


def _found_of(check: Check, name: str, is_open: bool) -> tuple[str, str]:
    """What a model gives, in a process of its own."""
    with tempfile.NamedTemporaryFile("r") as file:
        child: Any = get_context("fork").Process(target=_go_through, args=(check, name, is_open, file.name))
        child.start()
        child.join()
        text = file.read()
    return tuple(json.loads(text)) if text else ("died", f"exit code {child.exitcode}")


def _found_of_all(
    check: Check, names: Sequence[str], is_open: bool, jobs: int, keep: Path | None
) -> Iterator[tuple[str, str, str]]:
    """Name, outcome and reason of each."""
    lines = keep.read_text().splitlines() if keep and keep.exists() else []
    kept = {line[0]: line for line in map(json.loads, lines)}
    with ThreadPool(jobs) as pool:
        futures = {n: pool.apply_async(_found_of, (check, n, is_open)) for n in names if n not in kept}
        for name in names:
            line = kept.get(name) or [name, *futures[name].get()]
            if keep and name not in kept:
                with keep.open("a") as out:
                    print(json.dumps(line), file=out)
            yield line[0], line[1], line[2]


def main_of(description: str, all_names: Callable[[], list[str]], check: Check) -> None:
    """The command line of a script: a line for each model that is not right, and how many are.

    Args:
        description: of the script.
        all_names: of models, where none are given.
        check: what a model gives, and why.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", action="store_true", help="with sizes that are not known when compiled")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--sample", type=int, help="so many models, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--keep", type=Path, help="file of what was found")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    names = arguments.names or all_names()
    if arguments.sample:
        names = random.Random(arguments.seed).sample(names, min(arguments.sample, len(names)))
    preload()
    counts: Counter[str] = Counter()
    for name, kind, reason in _found_of_all(check, names, arguments.open, arguments.jobs, arguments.keep):
        counts[kind] += 1
        if kind != "right":
            text = " ".join(reason.split())
            print(f"{name:32} {kind:10} {text[:300]}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
