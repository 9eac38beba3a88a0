"""``relaxir compare``: what two models compute on the same inputs and weights; exit code 1 where that differs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from .cli_named import add_dims, add_inputs
from .cli_numbers import seed, tolerance
from .cli_output import tell
from .cli_paths import Read
from .cli_target import add_target
from .models import is_artifact, load_module

if TYPE_CHECKING:
    from ..module import Module

__all__ = ["add_compare"]

_FRAMEWORKS = (".pt2", ".onnx")


def add_compare(commands: Any) -> None:
    """Adds the command to ``relaxir``'s."""
    command = commands.add_parser(
        "compare",
        aliases=["bisect"],
        help="what two models compute, where they begin to differ, and the pass that brings it",
        description="Ends with exit code 0 where results are equal, 1 where they differ or a side cannot be run.",
    )
    command.add_argument(
        "expected", type=Read, metavar="A", help="MODEL.mlir, by its reference semantics; MODEL.pt2; MODEL.onnx"
    )
    command.add_argument(
        "found", type=Read, nargs="?", metavar="B", help="MODEL.mlir or MODEL.relax (default: A compiled, or A's import)"
    )
    command.add_argument("--pipeline", metavar="PASSES", help="compare the module A with what these relax passes make of it")
    add_target(command, "what A is compiled for (default: cpu)")
    command.add_argument(
        "--weights", type=Read, metavar="WEIGHTS", help="raw weights (default: random; of .pt2 and .onnx their own)"
    )
    add_inputs(command)
    add_dims(command, "of random inputs")
    command.add_argument("--seed", type=seed, default=0, metavar="N", help="of what is random (default: %(default)s)")
    command.add_argument("--tolerance", type=tolerance, metavar="X", help="error relative to the largest element of a tensor")
    command.add_argument("--values", action="store_true", help="compare values inside, too, where results are equal")
    command.set_defaults(command=_compare, refuse=command.error)


def _compare(arguments: argparse.Namespace) -> int:
    from ..debugging import compare

    alone = arguments.found is None
    if arguments.pipeline and (not alone or arguments.expected.endswith(_FRAMEWORKS)):
        arguments.refuse("--pipeline: expected a module alone")
    if arguments.target and (not alone or arguments.pipeline or arguments.expected.endswith(_FRAMEWORKS)):
        arguments.refuse("--target: expected a module alone, without --pipeline")
    if arguments.weights and arguments.expected.endswith(_FRAMEWORKS):
        arguments.refuse(f"--weights: {arguments.expected} has its own")
    if is_artifact(arguments.expected):
        arguments.refuse(f"expected a module, a .pt2 or an .onnx file first, got the artifact {arguments.expected}")
    inputs, sizes = _inputs(arguments), arguments.dims
    comparison = compare(
        arguments.expected if arguments.expected.endswith(_FRAMEWORKS) else load_module(arguments.expected),
        None if alone else _found(arguments.found),
        pipeline=arguments.pipeline,
        target=arguments.target or "cpu",
        weights=arguments.weights,
        inputs=inputs,
        sizes=sizes,
        seed=arguments.seed,
        tolerance=arguments.tolerance,
        values=arguments.values,
    )
    tell(arguments, str(comparison), comparison.as_json(), asked=True)
    return 0 if comparison.equal else 1


def _found(path: str) -> Module | Any:
    from .. import load

    return load(path) if is_artifact(path) else load_module(path)


def _inputs(arguments: argparse.Namespace) -> dict[str, np.ndarray[Any, Any]]:
    from .cli_io import read_npy

    return {name: read_npy(path, np.dtype(np.void)) for name, path in arguments.inputs.items()}
