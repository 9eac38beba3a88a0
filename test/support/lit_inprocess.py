"""A lit format that runs known tools inside the lit worker, in one fork per test; anything else goes to lit's own shell.

A test of two tools costs 10 ms so, and 200 ms with real processes, most of it imports. The fork keeps tests apart: a crash in
C++ ends one test, not the run. RUN lines stay what they are everywhere; ``lit --param shell=1`` runs real processes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import lit.formats
import lit.ShCommands
import lit.ShUtil
import lit.Test
import lit.TestRunner

from support.erasures import guard_erasures

__all__ = ["InProcess", "Step", "plan"]

_WARM = (
    "filecheck.matcher",
    "relaxir.dialect.ops",
    "relaxir.dialect.parser",
    "relaxir.dialect.passes.manager",
    "relaxir.tools.relax_opt",
)
#: Characters of a failed tool's output that a report shows.
_OUTPUT_SHOWN = 8000
#: A test that runs longer has hung; the slowest takes about a second.
_SECONDS = 120


def _relax_opt(argv: list[str]) -> int:
    from relaxir.tools.relax_opt import run

    return run(argv[1:])


def _relaxir(argv: list[str]) -> int:
    from relaxir.tools.cli import run

    return run(argv[1:])


def _filecheck(argv: list[str]) -> int:
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options

    return Matcher.from_opts(parse_argv_options(argv)).run()


#: Takes its arguments with its own name in front, returns the exit code.
Tool = Callable[[list[str]], int]

TOOLS: dict[str, Tool] = {
    "relax-opt": _relax_opt,
    "relaxir": _relaxir,
    "filecheck": _filecheck,
    "FileCheck": _filecheck,
}


@dataclass
class Step:
    """One command of a pipeline.

    Attributes:
        argv: the tool and its arguments.
        inverted: whether it must fail (``not``).
        redirects: ``(operator, file descriptor, target)`` in order; the target is a path or a descriptor.
    """

    argv: list[str]
    inverted: bool
    redirects: list[tuple[str, int, str]]


def plan(line: str) -> list[Step] | None:
    """The commands of a RUN line, None when it needs a shell."""
    try:
        parsed = lit.ShUtil.ShParser(line, win32Escapes=False, pipefail=True).parse()
    except ValueError:
        return None
    if not isinstance(parsed, lit.ShCommands.Pipeline) or parsed.negate:
        return None
    steps = [_step(command) for command in parsed.commands]
    return None if None in steps else [s for s in steps if s]


def _step(command: Any) -> Step | None:
    arguments = list(command.args)
    inverted = bool(arguments) and arguments[0] == "not"
    arguments = arguments[1:] if inverted else arguments
    if not arguments or not all(isinstance(a, str) for a in arguments) or arguments[0] not in TOOLS:
        return None
    if any("*" in a for a in arguments):  # the shell would look for files
        return None
    redirects = [_redirect(*redirect) for redirect in command.redirects]
    return None if None in redirects else Step(arguments, inverted, [r for r in redirects if r])


def _redirect(operator: tuple[Any, ...], target: str) -> tuple[str, int, str] | None:
    kind = operator[0]
    if kind not in (">", ">>", "<", ">&"):
        return None
    descriptor = operator[1] if len(operator) > 1 else (0 if kind == "<" else 1)
    if kind == ">&" and target not in ("1", "2"):
        return None
    return kind, descriptor, target


class InProcess(lit.formats.ShTest):
    """See the module.

    Args:
        real_processes: leave everything to lit's shell.
        tools: further ones by name. They travel with the tests to lit's workers, which are no forks from Python 3.14 on.
    """

    def __init__(self, real_processes: bool = False, tools: Mapping[str, Tool] | None = None):
        super().__init__(execute_external=False)
        self._tools = dict(tools or {})
        self._real_processes = real_processes or not hasattr(os, "fork")

    def execute(self, test: Any, litConfig: Any) -> Any:  # noqa: N803  lit's name
        TOOLS.update(self._tools)
        lines = None if self._real_processes else self._lines(test)
        plans = [plan(line) for line in lines] if lines else []
        if not plans or None in plans:
            return super().execute(test, litConfig)
        return _forked(lambda: _run(lines, plans), test, litConfig.maxIndividualTestTime or _SECONDS)

    def _lines(self, test: Any) -> list[str] | None:
        """The RUN lines after substitution; None for a test that is not plain."""
        script = lit.TestRunner.parseIntegratedTestScript(test, require_script=True)
        if isinstance(script, lit.Test.Result) or test.isExpectedToFail() or test.getMissingRequiredFeatures():
            return None
        directory, base = lit.TestRunner.getTempPaths(test)
        os.makedirs(directory, exist_ok=True)
        substitutions = [
            *self.extra_substitutions,
            *test.config.substitutions,
            *lit.TestRunner.getDefaultSubstitutions(test, directory, base, normalize_slashes=False),
        ]
        lines = lit.TestRunner.applySubstitutions(
            script, substitutions, {}, recursion_limit=test.config.recursiveExpansionLimit
        )
        return [_without_marker(line) for line in lines] if all(isinstance(line, str) for line in lines) else None


def _without_marker(line: str) -> str:
    """A RUN line without the ``%dbg(RUN: at line 1)`` that lit puts in front."""
    return re.sub(r"^%dbg\([^)]*\)\s*", "", line.strip())


def _run(lines: list[str], plans: list[list[Step]]) -> tuple[bool, str]:
    """Runs all lines; returns whether all succeeded and what to show."""
    log: list[str] = []
    for line, steps in zip(lines, plans, strict=True):
        log.append(f"$ {line}")
        data = b""
        for step in steps:
            tool = step.argv[0]
            code, data, errors = _call(step, data)
            log.append(errors.decode(errors="replace"))
            if (code != 0) != step.inverted:
                log.append(f"{tool}: exit code {code}\n{data.decode(errors='replace')[-_OUTPUT_SHOWN:]}")
                return False, "\n".join(log)
    return True, "\n".join(log)


def _call(step: Step, stdin: bytes) -> tuple[int, bytes, bytes]:
    """Runs a tool with real file descriptors, because MLIR writes to them past Python: exit code, stdout, stderr."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(stdin)
        files[0].seek(0)
        stack.enter_context(_descriptors([f.fileno() for f in files], step.redirects))
        code = _guarded(step.argv)
        _flush()
        for file in files[1:]:
            file.seek(0)
        return code, files[1].read(), files[2].read()


@contextlib.contextmanager
def _descriptors(sources: list[int], redirects: list[tuple[str, int, str]]) -> Iterator[None]:
    """Puts file descriptors in place of 0, 1 and 2, then applies redirections as a shell does."""
    _flush()
    kept = [os.dup(i) for i in range(3)]
    for target, source in enumerate(sources):
        os.dup2(source, target)
    for kind, descriptor, target in redirects:
        _redirected(kind, descriptor, target)
    streams = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(i, m, encoding="utf-8", closefd=False) for i, m in enumerate("rww"))
    try:
        yield
    finally:
        _flush()
        sys.stdin, sys.stdout, sys.stderr = streams
        for target, source in enumerate(kept):
            os.dup2(source, target)
            os.close(source)


def _redirected(kind: str, descriptor: int, target: str) -> None:
    if kind == ">&":
        os.dup2(int(target), descriptor)
        return
    flags = {">": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, ">>": os.O_WRONLY | os.O_CREAT | os.O_APPEND, "<": os.O_RDONLY}
    opened = os.open(target, flags[kind], 0o644)
    os.dup2(opened, descriptor)
    os.close(opened)


def _guarded(argv: list[str]) -> int:
    """What the process would have returned."""
    sys.argv = argv
    try:
        return TOOLS[argv[0]](argv) or 0
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:  # the interpreter's own behaviour at the end of a script
        traceback.print_exc()
        return 1


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _warm() -> None:
    """Imports what every test needs, once per worker. Makes no context: no threads before a fork."""
    for module in _WARM:
        importlib.import_module(module)
    guard_erasures()


def _forked(body: Callable[[], tuple[bool, str]], test: Any, seconds: int) -> Any:
    """Runs ``body`` in a fork of this warm worker and makes lit's result of it."""
    _warm()
    _flush()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        gc.freeze()  # else the collector writes to, and so copies, all pages of what was imported
        signal.alarm(seconds)  # ends loops in C++, too
        _child(body, test, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return lit.Test.Result(lit.Test.FAIL, f"killed by {name}; run it with --param shell=1 to see the tool that did it")
    if not data:
        return lit.Test.Result(lit.Test.FAIL, "the test ended without a result")
    passed, output = pickle.loads(data)
    return lit.Test.Result(lit.Test.PASS if passed else lit.Test.FAIL, output)


def _child(body: Callable[[], tuple[bool, str]], test: Any, write: int) -> None:
    try:
        os.environ.update(test.config.environment)
        result = pickle.dumps(body())
        with os.fdopen(write, "wb") as pipe:
            pipe.write(result)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)
