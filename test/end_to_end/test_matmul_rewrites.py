"""A Llama with its query, key and value products combined: less to move, and compiled it computes what eager torch does."""

from __future__ import annotations

import numpy as np

import relaxir
from relaxir.compiler import default_pipeline
from relaxir.dialect.analysis.work import work
from relaxir.dialect.functions import find_function
from support import models

COMBINE = "relax-combine-parallel-matmul,relax-reorder-permute-dims-after-concat"


def test_llama_with_one_product_for_query_key_and_value():
    model = models.llama()
    program = model.export()
    module = relaxir.from_torch(program)
    check_work(module)
    combined = module.run(COMBINE)
    assert "packed_matmul" in str(combined.run(default_pipeline()))
    executable = relaxir.compile(combined)
    executable.bind(executable.prepare(models.weights_of(program, combined)))
    for batch, length in ((2, 16), (1, 5)):
        inputs = model.inputs(batch, length)
        found = executable(**inputs)
        for got, wanted in zip(found if isinstance(found, tuple) else (found,), model.eager(inputs), strict=True):
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


def check_work(module: relaxir.Module) -> None:
    """In two layers q, k and v become one product, and gate and up do: as many operations, fewer bytes."""
    lifted, combined = (module.run(f"{p},relax-lift-transform-params,cse") for p in ("relax-canonicalize", COMBINE))
    assert [str(m).count('"relax.matmul"') for m in (module, lifted, combined)] == [15, 15, 9]
    before, after = (work(find_function(m.ir, "main")) for m in (lifted, combined))
    assert before.flops == after.flops
    assert all(after.at(s).bytes < before.at(s).bytes for s in ({"batch": 1, "seq": 1}, {"batch": 8, "seq": 64}))
