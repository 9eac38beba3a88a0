"""Clocks around the calls in compiled entries, for profiles: LLVM IR in, LLVM IR out; other code has none.

Before::

    define internal i64 @relaxir_main.body(...) {
      call void @kernel_0(ptr %1, ptr %8)

after::

      %clock.0 = call i64 @relaxir.time()
      call void @kernel_0(ptr %1, ptr %8)
      call void @relaxir.clock(i64 0, i64 %clock.0)

A clock adds up in ``@relaxir.clocks``, whose fields :data:`..profiling.CLOCKS` describes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from ..profiling import CLOCKS, FIELDS, ClockedCall

__all__ = ["with_clocks"]

_CALL = re.compile(r"^  (?:%\S+ = )?(?:tail )?call [^\n@]*@([\w.]+)\(.*$", re.M)
_RUNTIME = ("llvm.", "__kmpc")

_CODE = f"""
@{CLOCKS} = global [{{count}} x i64] zeroinitializer, align 64
declare i32 @clock_gettime(i32, ptr)
define internal i64 @relaxir.time() noinline {{{{
  %time = alloca [2 x i64]
  %failed = call i32 @clock_gettime(i32 {{clock}}, ptr %time)
  %seconds = load i64, ptr %time
  %behind = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %behind
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}}}
define internal void @relaxir.clock(i64 %number, i64 %begin) noinline {{{{
  %end = call i64 @relaxir.time()
  %at = mul i64 %number, {FIELDS}
  %calls = getelementptr i64, ptr @{CLOCKS}, i64 %at
  %sum = getelementptr i64, ptr %calls, i64 1
  %first = getelementptr i64, ptr %calls, i64 2
  %last = getelementptr i64, ptr %calls, i64 3
  %before = load i64, ptr %calls
  %more = add i64 %before, 1
  store i64 %more, ptr %calls
  %took = sub i64 %end, %begin
  %so.far = load i64, ptr %sum
  %all = add i64 %so.far, %took
  store i64 %all, ptr %sum
  %is.first = icmp eq i64 %before, 0
  %known = load i64, ptr %first
  %beginning = select i1 %is.first, i64 %begin, i64 %known
  store i64 %beginning, ptr %first
  store i64 %end, ptr %last
  ret void
}}}}
"""


def with_clocks(text: str, bodies: Mapping[str, str]) -> tuple[str, list[ClockedCall]]:
    """The text with a clock around each call of a function of it in entries, and these calls, in order.

    Args:
        text: LLVM IR of a module.
        bodies: the lowered functions of entries by name (:func:`.wrapper.body_name`).
    """
    calls = list[ClockedCall]()
    for entry, name in bodies.items():
        body = re.compile(rf"^define [^\n]*@{re.escape(name)}\(.*?^}}$", re.M | re.S)
        text = body.sub(lambda found, entry=entry: _CALL.sub(lambda call: _clocked(call, entry, calls), found[0]), text)
    clock = getattr(time, "CLOCK_MONOTONIC", 1)
    return text + _CODE.format(count=max(FIELDS * len(calls), 1), clock=clock), calls


def _clocked(call: re.Match[str], entry: str, calls: list[ClockedCall]) -> str:
    if call[1].startswith(_RUNTIME):
        return call[0]
    number = len(calls)
    calls.append(ClockedCall(entry, call[1]))
    begin = f"  %clock.{number} = call i64 @relaxir.time()"
    return f"{begin}\n{call[0]}\n  call void @relaxir.clock(i64 {number}, i64 %clock.{number})"
