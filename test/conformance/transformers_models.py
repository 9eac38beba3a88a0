"""Compares tiny models of the architectures of transformers, compiled, with transformers itself.

    .venv/bin/python test/conformance/transformers_models.py [--open] [--jobs N] [--sample N] [--keep FILE] [NAME ...]

Each is built from its configuration made small, with random weights, exported by torch.export (``--open``: with sizes of
the batch and of sequences that are not known, and called with others, too), imported, compiled, and called. A line for each
that is not right, and how many are. What torch.export does not take does not count.

``--keep FILE`` writes what each gave as JSON lines, and takes what is there already: a run that was stopped goes on.
"""

from __future__ import annotations

import functools
import itertools

import torch
from model_runs import SIZES, Case, Tensors, is_stable, main_of, outcome
from tiny_inputs import candidates
from tiny_models import TooLargeError, architectures, classes_of, models_of


def runnable(name: str) -> Case:
    """The first class of an architecture that is built small and runs in PyTorch, and gives the same twice."""
    last: Exception = TooLargeError("no small configuration")
    for cls in classes_of(name):
        for model in models_of(name, cls):
            if isinstance(model, Exception):
                last = last if isinstance(model, TooLargeError) else model
                continue
            for position, inputs in enumerate(candidates(model, *SIZES[0])):
                if not inputs:
                    continue
                try:
                    called = Tensors(model, list(inputs)).eval()
                    if is_stable(called, inputs):
                        return _case(called, position)
                    last = ValueError("results are random")
                except Exception as error:
                    last = error
    raise last


def _case(called: Tensors, position: int) -> Case:
    def inputs(rows: int, length: int) -> dict[str, torch.Tensor] | None:
        return next(itertools.islice(candidates(called.model, rows, length), position, None), None)

    return Case(called, inputs)


if __name__ == "__main__":
    main_of(__doc__ or "", architectures, functools.partial(outcome, runnable))
