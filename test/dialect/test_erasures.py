"""What guards all tests against erased ops that are in use (support/erasures.py) refuses them, and nothing else."""

import pytest
from torch_mlir import ir
from torch_mlir.rewrite import RewritePatternSet, walk_and_apply_patterns

TEXT = """
func.func @main(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.muli %0, %a : i32
  return %a : i32
}
"""
USED = "expected nothing that uses what is erased, got '{}', which uses {}"


@pytest.fixture
def module():
    with ir.Context(), ir.Location.unknown():
        yield ir.Module.parse(TEXT)


def test_an_op_whose_result_is_in_use(module):
    entry = module.body.operations[0].entry_block
    first, second, _ = entry.operations
    with pytest.raises(AssertionError, match=USED.format("arith.muli", "%0")):
        first.erase()
    with pytest.raises(AssertionError, match=USED.format("arith.muli", "%0")):
        first.operation.erase()
    second.erase()
    first.erase()
    assert [op.operation.name for op in entry.operations] == ["func.return"]


def test_an_argument_in_use(module):
    entry = module.body.operations[0].entry_block
    with pytest.raises(AssertionError, match=USED.format("func.return", "%arg0")):
        entry.erase_argument(0)
    entry.erase_argument(1)
    assert len(entry.arguments) == 1


def test_an_op_that_a_rewriter_erases():
    refused: list[str] = []

    def erases(op, rewriter):
        try:
            rewriter.erase_op(op)
        except AssertionError as error:
            refused.append(str(error))
            return True
        return False

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT.replace("return %a", "return %1"))
        patterns = RewritePatternSet()
        patterns.add("arith.muli", erases)
        walk_and_apply_patterns(module.operation, patterns.freeze())
        assert refused == [USED.format("func.return", "%1")]
        assert "arith.muli" in str(module)
