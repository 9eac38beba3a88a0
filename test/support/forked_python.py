"""Programs of Python in processes of their own, forked from one that has imported what is slow to import.

A program sees what a new interpreter would show it, but that torch, MLIR and relaxir's modules are imported: 30 ms instead of
one to six seconds. What relaxir finds in its environment (plug-ins, variables) it looks for in each anew. A test of what an
import does starts an interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["run"]

#: Packages whose modules are all imported, those inside of them, too: none has a state before it is used.
_OURS = ("relaxir.dialect", "relaxir.frontend", "relaxir.lowering.cpu", "relaxir.lowering.fusion", "relaxir.lowering.kernels",
    "relaxir.lowering.linalg", "relaxir.runtime")  # fmt: skip
#: What is slow to import; the last ones are what an export imports.
_WARM = ("relaxir.compiler", "relaxir.lowering.compile", "torch", "torch.export._trace", "torch._dynamo", "torch._inductor")


def run(
    code: str, *arguments: str, environment: Mapping[str, str] | None = None, cwd: str = "/"
) -> subprocess.CompletedProcess[str]:
    """Runs a program as ``python -c code`` would.

    Args:
        code: the program.
        arguments: of the program, ``sys.argv[1:]``.
        environment: all variables that it sees, this process's without them. ``PYTHONPATH`` is added to where it imports from.
        cwd: the folder it runs in.
    """
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, name)) for name in ("stdout", "stderr")]
        given = dict(os.environ if environment is None else environment)
        request = {"code": code, "arguments": arguments, "environment": given, "cwd": cwd, "paths": paths}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        assert answer, "the process that forks has ended"
        told = [Path(path).read_text() for path in paths]
    return subprocess.CompletedProcess(["-c", *arguments], int(answer), *told)


@functools.cache
def _server() -> subprocess.Popen[str]:
    """One for this process; it ends when its input does."""
    pipe = subprocess.PIPE
    server = subprocess.Popen([sys.executable, "-P", __file__], stdin=pipe, stdout=pipe, text=True, cwd="/")
    atexit.register(server.communicate)
    return server


def _serve() -> None:
    from relaxir.dialect import plugins

    for name in [*_WARM, *(module for package in _OURS for module in _modules(package))]:
        with contextlib.suppress(ImportError):  # of a package that is not installed
            importlib.import_module(name)
    assert not plugins.plugins.cache_info().currsize, "programs have plug-ins of their own"
    gc.collect()
    gc.freeze()  # else the collector of a fork copies all pages
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _modules(package: str) -> Iterator[str]:
    paths = importlib.import_module(package).__path__
    return (found.name for found in pkgutil.walk_packages(paths, f"{package}."))


def _run(request: dict[str, Any]) -> None:
    """A program, from its start to the end of this process."""
    for descriptor, path in enumerate([os.devnull, *request["paths"]]):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = ["-c", *request["arguments"]]
    sys.modules["__main__"] = main = ModuleType("__main__")
    status = _ended(request["code"], main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _ended(code: str, main: ModuleType) -> int:
    """The exit status of a program."""
    try:
        exec(compile(code, "<string>", "exec"), main.__dict__)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # as the interpreter ends a program
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _serve()
