"""Embeddings that are also weights of products are held once, look-ups mean what they meant, and the report says so."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.context import new_context
from relaxir.dialect.reports.shared_weights import SharedWeights
from support.contracts import check_contracts
from support.models import gpt2, llama, weights_of

PIPELINES = [
    "relax-share-packed-weights",
    "relax-share-packed-weights{always=true}",
    "relax-pack-weights{tile=4},relax-sink-growth,relax-share-packed-weights{always=true},relax-lift-transform-params",
    "relax-pack-weights{tile=4},relax-share-packed-weights,relax-sink-growth,relax-share-packed-weights,relax-canonicalize,cse",
    "relax-pack-weights{tile=16},relax-share-packed-weights,relax-lift-transform-params,relax-share-packed-weights",
]


def embedding(rng: random.Random, index: int, n: int, k: int) -> tuple[list[str], list[str]]:
    """A matrix ``%w{index}`` of f32, plain, widened or dequantized: the weights' declarations and the ops."""
    kind, out = rng.choice(["f32", "bf16", "i8", "i8"]), f"tensor<{n}x{k}xf32>"
    if kind == "f32":
        return [f"%w{index}: {out}"], []
    stored = f"tensor<{n}x{k}x{kind}>"
    if kind == "bf16":
        return [f"%q{index}: {stored}"], [f'%w{index} = "relax.astype"(%q{index}) {{dtype = f32}} : ({stored}) -> {out}']
    scale = rng.choice([f"tensor<{n}x{rng.choice([1, 2, k])}xf32>", "tensor<f32>", f"tensor<1x{k}xf32>"])
    lines = [
        f'%z{index} = "relax.full"() {{value = 0 : i64}} : () -> tensor<i8>',
        f'%w{index} = "relax.dequantize"(%q{index}, %s{index}, %z{index}) : ({stored}, {scale}, tensor<i8>) -> {out}',
    ]
    return [f"%q{index}: {stored}", f"%s{index}: {scale}"], lines


def uses(rng: random.Random, index: int, n: int, k: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Look-ups in a matrix and products with it, in any order, one of them perhaps in a loop; the ops and their results."""
    matrix, lines, results = f"tensor<{n}x{k}xf32>", list[list[str]](), list[tuple[str, str]]()
    for number in range(rng.randrange(1, 4)):
        name, rows = f"%h{index}_{number}", rng.choice(["3", "2x2", ""])
        ids = f"tensor<{rows}xi64>" if rows else "tensor<i64>"
        result = f"tensor<{f'{rows}x' if rows else ''}{k}xf32>"
        take = f'"relax.take"(%w{index}, %ids{"_" + rows if rows else ""}) : ({matrix}, {ids}) -> {result}'
        if rng.random() < 0.3:
            zero, loop = f"%i{index}_{number}", f"%l{index}_{number}"
            take = (
                f'{zero} = "relax.full"() {{value = 0.0 : f64}} : () -> {result}\n'
                f"{name} = scf.for %j = %c0 to %c2 step %c1 iter_args(%a = {zero}) -> ({result}) {{\n"
                f"{loop} = {take}\n%b = " + f'"relax.add"(%a, {loop}) : ({result}, {result}) -> {result}\n'
                f"scf.yield %b : {result}\n}}"
            )
            lines.append([take])
        else:
            lines.append([f"{name} = {take}"])
        results.append((name, result))
    transposed, product = f"tensor<{k}x{n}xf32>", f"tensor<2x{n}xf32>"
    lines.append([
        f'%t{index} = "relax.permute_dims"(%w{index}) : ({matrix}) -> {transposed}',
        f'%y{index} = "relax.matmul"(%x{k}, %t{index}) : (tensor<2x{k}xf32>, {transposed}) -> {product}',
    ])  # fmt: skip
    results.append((f"%y{index}", product))
    if rng.random() < 0.2:
        lines.append([f'%r{index} = "relax.negative"(%w{index}) : ({matrix}) -> {matrix}'])
        results.append((f"%r{index}", matrix))
    rng.shuffle(lines)
    return list(itertools.chain(*lines)), results


def module_of(seed: int) -> str:
    rng = random.Random(seed)
    declared, lines, results = list[str](), list[str](), list[tuple[str, str]]()
    for index in range(rng.randrange(1, 3)):
        n, k = rng.choice([6, 16, 70, 130]), rng.choice([4, 6])
        weights, ops = embedding(rng, index, n, k)
        used, found = uses(rng, index, n, k)
        declared, lines, results = declared + weights, lines + ops + used, results + found
    arguments = ["%ids: tensor<i64>", "%ids_3: tensor<3xi64>", "%ids_2x2: tensor<2x2xi64>", "%x4: tensor<2x4xf32>"]
    arguments += ["%x6: tensor<2x6xf32>", *(f'{d} {{relax.name = "{d[1 : d.index(":")]}"}}' for d in declared)]
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(3))
    types = ", ".join(t for _, t in results)
    return (
        f"func.func @main({', '.join(arguments)}) -> ({types}) attributes {{relax.num_input = 5 : i64}} {{\n{constants}\n"
        + "\n".join(lines)
        + f"\nreturn {', '.join(v for v, _ in results)} : {types}\n}}"
    )


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_embeddings(start: int) -> None:
    context, shared = new_context(), 0
    for seed in range(start, start + 20):
        text = module_of(seed)
        assert check_contracts(text, context, PIPELINES) == len(PIPELINES), seed
        shared += "packed_take" in str(rx.Module.parse(text).run(PIPELINES[2]))
    assert shared > 5


def bytes_held(executable: rx.Executable) -> int:
    return sum(w.array.nbytes for w in executable.manifest.prepared_weights.values())


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_tied_weights_of_models_are_held_once(name: str) -> None:
    model = gpt2() if name == "gpt2" else llama(tied=True)
    program = model.export()
    module = rx.from_torch(program)
    weights = weights_of(program, module)
    executable = rx.compile(module, cache=False)
    (section,) = [s for s in executable.report.sections if isinstance(s, SharedWeights)]
    ((source, saved),) = [(s.sources[0], s.bytes) for s in section.shared]
    assert section.twice == ()
    assert saved == weights[source].nbytes
    assert f"look-ups read '{source}' packed" in str(executable.report)
    once = sum(w.nbytes for w in weights.values())
    assert once <= bytes_held(executable) < once + saved // 4  # the last panel of a matrix is padded
    executable.bind(executable.prepare(weights))
    inputs = model.inputs()
    got = executable(**{k: v.numpy() for k, v in inputs.items()})
    np.testing.assert_allclose(got, model.eager(inputs)[0], rtol=1e-3, atol=1e-4)


def test_the_report_says_why_a_weight_is_held_twice() -> None:
    b = rx.Builder()
    with b.function("main"):
        ids, w = b.input("ids", (40,), "i64"), b.weight("wte", (64, 16), "f32")
        b.output(b.matmul(b.take(w, ids), b.permute_dims(w)))
    report = rx.compile(b.build(), cache=False).report
    (section,) = [s for s in report.sections if isinstance(s, SharedWeights)]
    assert section.lines() == ["@main: 'wte' is held twice, 4.0 KiB: 40 rows of 64 are looked up at once"]
    assert section.summary() == ["@main: look-ups read 0 packed weights, 0 B less; 1 weight held twice"]
    assert SharedWeights.as_json(section) in report.as_json()["sections"]
