"""Recursion, and programs that are deep without one: long chains of calls, regions in regions."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.parser import MAX_NESTING
from relaxir.script import script
from support.random_pipelines import PASSES

T, N = "tensor<4xf32>", "tensor<i32>"
X = np.array([1, -2, 3, -4], np.float32)
#: Of the brackets that a module may have inside of others, those that are not the regions'.
NESTED = MAX_NESTING - 10
#: Three times what Python's stack carries; 10,000 take 8 s.
CALLS = 3_000
NEED_OPTIONS = {"relax-update-vdevice": "{from=cuda:0 to=cpu:0}"}


def call(name: str) -> str:
    return f"func.call @{name}(%n, %x) : ({N}, {T}) -> {T}"


def function(name: str, body: str) -> str:
    return f"func.func private @{name}(%n: {N}, %x: {T}) -> {T} {{\n{body}\nreturn %y : {T}\n}}\n"


BRANCH = f"""
  %b = tensor.extract %c[] : tensor<i1>
  %y = scf.if %b -> {T} {{
    %r = func.call @f(%m, %x) : ({N}, {T}) -> {T}
    %q = "relax.negative"(%r) : ({T}) -> {T}
    scf.yield %q : {T}
  }} else {{
    scf.yield %x : {T}
  }}"""
LOOP = f"""
  %lo = arith.constant 0 : index
  %hi = arith.constant 1 : index
  %y = scf.for %i = %lo to %hi step %hi iter_args(%a = %x) -> ({T}) {{
    %r = {call("f")}
    scf.yield %r : {T}
  }}"""
COUNT = f"""
  %one = "relax.full"() {{value = 1 : i64}} : () -> {N}
  %zero = "relax.full"() {{value = 0 : i64}} : () -> {N}
  %m = "relax.subtract"(%n, %one) : ({N}, {N}) -> {N}
  %c = "relax.greater"(%n, %zero) : ({N}, {N}) -> tensor<i1>"""
MAIN = f"func.func @main(%n: {N}, %x: {T}) -> {T} {{\n%y = {call('f')}\nreturn %y : {T}\n}}\n"
RECURSIONS = {
    "@f -> @f": MAIN + function("f", f"%y = {call('f')}"),
    "@f -> @g -> @h -> @f": MAIN
    + function("f", f"%y = {call('g')}")
    + function("g", f"%y = {call('h')}")
    + function("h", f"%y = {call('f')}"),
    "@f -> @f in a loop": MAIN + function("f", LOOP),
    "@main -> @f -> @main": MAIN + function("f", f"%y = {call('main')}"),
}
COUNTDOWN = MAIN + function("f", COUNT + BRANCH)


@pytest.mark.parametrize("cycle", RECURSIONS)
def test_a_recursion_without_end_is_refused(cycle):
    module = rx.Module.parse(RECURSIONS[cycle])
    with pytest.raises(RelaxError, match=f"expected no recursion in compiled code, got the calls {cycle.split(' in')[0]}$"):
        rx.compile(module)
    with pytest.raises(RelaxError, match=r"expected calls nested at most 100\d deep, got more"):
        rx.evaluate(module, "main", np.int32(1), X)


def test_a_recursion_that_ends_is_evaluated_and_not_compiled():
    module = rx.Module.parse(COUNTDOWN)
    for count in (0, 3, 900):
        (found,) = rx.evaluate(module, "main", np.int32(count), X)
        np.testing.assert_array_equal(found, X if count % 2 == 0 else -X)
    with pytest.raises(RelaxError, match="expected no recursion in compiled code, got the calls @f -> @f"):
        rx.compile(module)


@pytest.mark.filterwarnings("ignore:.*is recursive, calls of")
def test_passes_take_recursion_depth_and_chains():
    """Recursion is left as it is; nesting and chains of calls use no stack."""
    last = "relax-bundle-model-params"  # lazy IO reads tensors one by one
    names = [n for n in PASSES if "inline" not in n and n != last]
    pipeline = ",".join(n + NEED_OPTIONS.get(n, "") for n in [*names, last])
    for text in (*RECURSIONS.values(), COUNTDOWN, nested("scf.if", 300), chain(1100)):
        module = rx.Module.parse(text).run(pipeline)
        module.run("relax-inline-private-functions")
    module.run("relax-inline{functions=f1}")


@pytest.mark.parametrize(("kind", "depth"), [("scf.if", NESTED), ("scf.for", 200)])
def test_deep_regions(kind, depth):
    module = rx.Module.parse(nested(kind, depth))
    inputs, weights = (X, np.array(True)), {"w": X}
    assert script(module.ir).count(kind) == depth
    (expected,) = rx.evaluate(module, "f0", *inputs, weights=weights)
    executable = rx.compile(module)
    executable.bind(executable.prepare(weights))
    np.testing.assert_array_equal(executable(*inputs), expected)


def test_long_chains_of_calls():
    module = rx.Module.parse(chain(CALLS))
    (expected,) = rx.evaluate(module, "f0", X)
    np.testing.assert_array_equal(expected, X if CALLS % 2 == 0 else -X)
    np.testing.assert_array_equal(rx.compile(module, cache=False)(X), expected)


def chain(count: int) -> str:
    """Functions that negate and call the next one; the first one is public."""
    return "".join(
        f"func.func {'private ' if i else ''}@f{i}(%x: {T}) -> {T} {{\n"
        f'%a = "relax.negative"(%x) : ({T}) -> {T}\n'
        + (f"%y = func.call @f{i + 1}(%a) : ({T}) -> {T}\nreturn %y : {T}\n}}\n" if i < count - 1 else f"return %a : {T}\n}}\n")
        for i in range(count)
    )


def nested(kind: str, depth: int) -> str:
    """Branches or loops in one another, each of which negates; then a weight is added."""
    lines = ["%lo = arith.constant 0 : index", "%hi = arith.constant 1 : index", "%t = tensor.extract %b[] : tensor<i1>"]
    value = "%x"
    for i in range(depth):
        loop = f"%r{i} = scf.for %i{i} = %lo to %hi step %hi iter_args(%c{i} = {value}) -> ({T}) {{"
        lines.append(f"%r{i} = scf.if %t -> {T} {{" if kind == "scf.if" else loop)
        lines.append(f'%a{i} = "relax.negative"({value if kind == "scf.if" else f"%c{i}"}) : ({T}) -> {T}')
        value = f"%a{i}"
    for i in reversed(range(depth)):
        lines.append(f"scf.yield {value} : {T}\n" + (f"}} else {{\nscf.yield %x : {T}\n}}" if kind == "scf.if" else "}"))
        value = f"%r{i}"
    given = f'(%x: {T} {{relax.name = "x"}}, %b: tensor<i1> {{relax.name = "b"}}, %w: {T} {{relax.name = "w"}}) -> {T}'
    body = "\n".join([*lines, f'%s = "relax.add"({value}, %w) : ({T}, {T}) -> {T}', f"return %s : {T}"])
    return f"func.func @f0{given} attributes {{relax.num_input = 2 : i64}} {{\n{body}\n}}"
