import numpy as np
import pytest

from relaxir import Module, RelaxError, evaluate
from relaxir.dialect.communicator import ThreadRank, communicating, thread_ranks

MODULE = Module.parse("""
func.func @all_reduce(%x: tensor<?xbf16>) -> tensor<?xbf16> {
  %0 = "relax.all_reduce"(%x) : (tensor<?xbf16>) -> tensor<?xbf16>
  return %0 : tensor<?xbf16>
}
func.func @all_gather(%x: tensor<2xi1>) -> tensor<3x2xi1> {
  %0 = "relax.all_gather"(%x) {ranks = 3 : i64} : (tensor<2xi1>) -> tensor<3x2xi1>
  return %0 : tensor<3x2xi1>
}
func.func @rank() -> tensor<i64> {
  %0 = "relax.rank"() : () -> tensor<i64>
  return %0 : tensor<i64>
}
""")


def test_all_reduce_sums_narrow_floats_in_f32() -> None:
    import ml_dtypes

    # 256 + 0.5 + 0.5 is 257 in f32, rounded to 256 at once; 1 + 2^-8 + 2^-8 keeps what each addition would lose.
    terms = [np.array([v], ml_dtypes.bfloat16) for v in (1.0, 2.0**-8, 2.0**-8)]
    results = thread_ranks(3, lambda r: evaluate(MODULE, "all_reduce", terms[r.rank])[0])
    assert [float(r[0]) for r in results] == [1.0078125] * 3


def test_all_gather_and_rank() -> None:
    def run(rank: ThreadRank) -> tuple[np.ndarray, int]:
        (parts,) = evaluate(MODULE, "all_gather", np.array([rank.rank == 0, rank.rank == 2]))
        return parts, int(evaluate(MODULE, "rank")[0])

    results = thread_ranks(3, run)
    assert [number for _, number in results] == [0, 1, 2]
    for parts, _ in results:
        np.testing.assert_array_equal(parts, [[True, False], [False, False], [False, True]])


def test_alone_a_rank_is_the_first_of_one() -> None:
    assert evaluate(MODULE, "rank")[0] == 0
    with pytest.raises(RelaxError, match="expected 3 ranks, got 1"):
        evaluate(MODULE, "all_gather", np.zeros(2, bool))


def test_an_error_in_one_rank_ends_the_waiting_of_others() -> None:
    def run(rank: ThreadRank) -> None:
        with communicating(rank):
            if rank.rank == 1:
                raise RelaxError("lost")
            rank.all_reduce(np.zeros(1))

    with pytest.raises(RelaxError, match=r"lost|rank \d: expected all of 2 ranks to meet, got an error in another"):
        thread_ranks(2, run)


def test_no_rank_is_refused() -> None:
    with pytest.raises(RelaxError, match="expected 1 rank or more, got 0"):
        thread_ranks(0, lambda rank: rank)
