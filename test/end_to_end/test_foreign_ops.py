"""Operations of other dialects that somebody wrote by hand: compiled code stays inside of its tensors, or is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import relaxir as rx
from support.guard_pages import guarded_copy

FAR = [-1, 4, 10**9, 2**62, -(2**62)]


def compiled(body: str) -> rx.Executable:
    return rx.compile(rx.Module.parse(body, "f.mlir"))


GATHER = """func.func @main(%x: tensor<4xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%i : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%j: i64, %o: f32):
    PLACE
    %v = tensor.extract %x[%k] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


@pytest.mark.parametrize(
    ("place", "inside", "outside"),
    [
        ("%k = arith.index_cast %j : i64 to index", ([3, 0, 1],), [[far, 0, 0] for far in FAR]),
        ("%a = linalg.index 0 : index %c = arith.constant 2 : index %k = arith.muli %a, %c : index", (), ([0, 0, 0],)),
        ("%a = linalg.index 0 : index %c = arith.constant 1 : index %k = arith.subi %a, %c : index", (), ([0, 0, 0],)),
        (
            """%a = arith.trunci %j : i64 to i8 %c = arith.constant 126 : i8 %d = arith.constant 2 : i8
    %n = arith.constant 128 : index %b = arith.maxsi %a, %c : i8 %s = arith.addi %b, %d : i8
    %w = arith.index_cast %s : i8 to index %k = arith.subi %w, %n : index""",
            (),
            ([0, 0, 0], [127, 127, 127]),
        ),
    ],
)
def test_an_element_at_a_place_that_is_outside_is_refused_when_it_is_called(
    place: str, inside: Sequence[list[int]], outside: Sequence[list[int]]
) -> None:
    executable, x = compiled(GATHER.replace("PLACE", place)), guarded_copy(np.arange(4, dtype=np.float32))
    for indices in inside:
        assert executable(x, guarded_copy(np.array(indices))).tolist() == indices
    for indices in outside:
        with pytest.raises(rx.RelaxError, match=r"f\.mlir:\d+:10: 'tensor\.extract' op expected a place that is inside"):
            executable(x, guarded_copy(np.array(indices)))


def test_an_element_at_a_place_that_is_inside_is_read() -> None:
    place = "%a = linalg.index 0 : index %c = arith.constant 1 : index %k = arith.addi %a, %c : index"
    got = compiled(GATHER.replace("PLACE", place))(np.arange(4, dtype=np.float32), np.zeros(3, np.int64))
    assert got.tolist() == [1, 2, 3]


@pytest.mark.parametrize("first", ["maxsi", "minsi"])
def test_an_element_at_a_place_that_is_limited_is_read_wherever_it_points(first: str) -> None:
    limits = {"maxsi": "%low", "minsi": "%high"}
    second = "minsi" if first == "maxsi" else "maxsi"
    place = f"""%a = arith.index_cast %j : i64 to index
    %low = arith.constant 0 : index
    %high = arith.constant 3 : index
    %b = arith.{first} %a, {limits[first]} : index
    %k = arith.{second} %b, {limits[second]} : index"""
    executable = compiled(GATHER.replace("PLACE", place))
    for far in FAR:
        got = executable(guarded_copy(np.arange(4, dtype=np.float32)), guarded_copy(np.array([1, far, 2])))
        assert got.tolist() == [1, 0 if far < 0 else 3, 2]
    further = compiled(GATHER.replace("PLACE", place.replace("constant 3", "constant 4")))
    with pytest.raises(rx.RelaxError, match=r"'tensor\.extract' op expected a place that is inside"):
        further(np.zeros(4, np.float32), np.array([1, 9, 2]))


def test_places_in_tensors_of_no_elements_are_refused_unless_there_is_no_turn() -> None:
    text = """
func.func @main(%xx: tensor<?xf32, {sym = ["n"]}>, %ii: tensor<?xi64, {sym = ["m"]}>) -> tensor<?xf32, {sym = ["m"]}> {
  %x = tensor.cast %xx : tensor<?xf32, {sym = ["n"]}> to tensor<?xf32>
  %i = tensor.cast %ii : tensor<?xi64, {sym = ["m"]}> to tensor<?xi64>
  %c = arith.constant 0 : index
  %m = tensor.dim %i, %c : tensor<?xi64>
  %e = tensor.empty(%m) : tensor<?xf32>
  %0 = linalg.map ins(%i : tensor<?xi64>) outs(%e : tensor<?xf32>) (%j: i64, %o: f32) {
    %k = arith.index_cast %j : i64 to index
    %v = tensor.extract %x[%k] : tensor<?xf32>
    linalg.yield %v : f32
  }
  %r = tensor.cast %0 : tensor<?xf32> to tensor<?xf32, {sym = ["m"]}>
  return %r : tensor<?xf32, {sym = ["m"]}>
}"""
    known = text.replace('tensor<?xf32, {sym = ["n"]}>', "tensor<0xf32>").replace("%x : tensor<?xf32>", "%xx : tensor<0xf32>")
    nothing, one = np.zeros(0, np.int64), np.zeros(1, np.int64)
    for executable in (compiled(text), compiled(known.replace("extract %x[%k] : tensor<?x", "extract %xx[%k] : tensor<0x"))):
        assert executable(guarded_copy(np.zeros(0, np.float32)), nothing).shape == (0,)
        with pytest.raises(rx.RelaxError, match=r"'tensor\.extract' op expected a place that is inside"):
            executable(guarded_copy(np.zeros(0, np.float32)), one)


def test_a_place_that_turns_before_have_computed_is_looked_at_turn_by_turn() -> None:
    """Each turn adds the element of x at the sum so far."""
    executable = compiled("""func.func @main(%x: tensor<4xi64>, %n: tensor<3xi64>) -> tensor<i64> {
  %z = arith.constant dense<0> : tensor<i64>
  %0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> ()>], iterator_types = ["reduction"]}
      ins(%n : tensor<3xi64>) outs(%z : tensor<i64>) {
  ^bb0(%j: i64, %o: i64):
    %k = arith.index_cast %o : i64 to index
    %v = tensor.extract %x[%k] : tensor<4xi64>
    %w = arith.addi %v, %o : i64
    linalg.yield %w : i64
  } -> tensor<i64>
  return %0 : tensor<i64>
}""")
    n = np.zeros(3, np.int64)
    assert executable(guarded_copy(np.array([1, 2, 0, 5])), n) == 8
    with pytest.raises(rx.RelaxError, match=r"'tensor\.extract' op expected a place that is inside"):
        executable(guarded_copy(np.array([1, 3, 0, 5])), n)


@pytest.mark.parametrize("op", ["arith.divsi", "arith.divui", "arith.remsi", "arith.ceildivsi"])
def test_a_division_of_elements_that_has_no_result_is_refused_when_it_is_called(op: str) -> None:
    text = f"""func.func @main(%x: tensor<3xi64>, %y: tensor<3xi64>) -> tensor<3xi64> {{
  %0 = linalg.map {{ {op} }} ins(%x, %y : tensor<3xi64>, tensor<3xi64>) outs(%x : tensor<3xi64>)
  return %0 : tensor<3xi64>
}}"""
    executable = compiled(text)
    got = executable(np.array([6, 5, 4]), np.array([3, 3, 8]))
    want = {"arith.remsi": [0, 2, 4], "arith.ceildivsi": [2, 2, 1]}
    assert got.tolist() == want.get(op, [2, 1, 0])
    least = -(2**63)
    for x, y in (([1, 1, 1], [1, 0, 1]), *([([least, 0, 0], [-1, 1, 1])] if op != "arith.divui" else [])):
        with pytest.raises(
            rx.RelaxError, match=f"f.mlir:2:.*'{op}' op expected a divisor other than 0.* in every turn of linalg.map"
        ):
            executable(np.array(x), np.array(y))


@pytest.mark.parametrize("condition", ["%t", "%other"])
def test_a_check_by_hand_counts_by_what_it_checks_and_not_by_what_it_says(condition: str) -> None:
    executable = compiled(f"""func.func @main(%x: tensor<4xf32>, %i: tensor<i64>) -> tensor<f32> {{
  %k = tensor.extract %i[] : tensor<i64>
  %j = arith.index_cast %k : i64 to index
  %t = arith.constant true
  %c = arith.constant 4 : index
  %other = arith.cmpi ult, %c, %j : index
  cf.assert {condition}, "'tensor.extract' op expected an index in [0, 4)"
  %v = tensor.extract %x[%j] : tensor<4xf32>
  %r = tensor.splat %v : tensor<f32>
  return %r : tensor<f32>
}}""")
    with pytest.raises(rx.RelaxError, match=r"f\.mlir:8:8: 'tensor\.extract' op expected an index in \[0, 4\)"):
        executable(guarded_copy(np.zeros(4, np.float32)), np.array(10**6))


def test_a_check_by_hand_of_sizes_counts_by_what_it_checks() -> None:
    text = SUM.replace("MAP", "a").replace(
        "  %0 =", "  %t = arith.constant true\n  cf.assert %t, \"'linalg.generic' op \"\n  %0 ="
    )
    with pytest.raises(rx.RelaxError, match=r"'linalg\.generic' op expected sizes that agree"):
        compiled(text)(guarded_copy(np.ones(4000, np.float32)), guarded_copy(np.ones(1, np.float32)))


SUM = """func.func @main(%xx: tensor<?xf32, {sym = ["n"]}>, %yy: tensor<?xf32, {sym = ["m"]}>) -> tensor<f32> {
  %x = tensor.cast %xx : tensor<?xf32, {sym = ["n"]}> to tensor<?xf32>
  %y = tensor.cast %yy : tensor<?xf32, {sym = ["m"]}> to tensor<?xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (MAP)>, affine_map<(a) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%z : tensor<f32>) {
  ^bb0(%j: f32, %k: f32, %o: f32):
    %v = arith.addf %j, %k : f32
    %w = arith.addf %v, %o : f32
    linalg.yield %w : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}"""


@pytest.mark.parametrize(("map_", "times", "more"), [("a", 1, 1), ("a + 1", 1, 2), ("a * 2", 2, 1), ("a * 2 + 3", 2, 4)])
def test_sizes_that_do_not_agree_are_refused_when_it_is_called(map_: str, times: int, more: int) -> None:
    executable = compiled(SUM.replace("MAP", map_))
    for n in (1, 2, 5):
        needed = times * (n - 1) + more
        for m in (0, 1, needed - 1, needed, needed + 1, 4000):
            x, y = guarded_copy(np.ones(n, np.float32)), guarded_copy(np.ones(m, np.float32))
            if m == n if map_ == "a" else m >= needed:
                assert executable(x, y) == 2 * n
                continue
            with pytest.raises(rx.RelaxError, match=r"'linalg\.generic' op expected sizes that agree"):
                executable(x, y)


@pytest.mark.parametrize(
    ("map_", "place"),
    [
        ("a floordiv 2", lambda a: a // 2),
        ("a ceildiv 2", lambda a: -(-a // 2)),
        ("(a * 3) mod 4", lambda a: a * 3 % 4),
        ("-a + 3", lambda a: 3 - a),
    ],
)
def test_index_maps_that_are_no_sums_are_gone_through_in_each_call(map_: str, place: Callable[[int], int]) -> None:
    executable = compiled(SUM.replace("MAP", map_))
    for n, m in itertools.product((0, 1, 3, 4, 5), (0, 1, 2, 3, 4)):
        x, y = guarded_copy(np.ones(n, np.float32)), guarded_copy(np.arange(m, dtype=np.float32))
        places = [place(a) for a in range(n)]
        if all(0 <= i < m for i in places):
            assert executable(x, y) == n + sum(places)
            continue
        with pytest.raises(rx.RelaxError, match=r"'linalg\.generic' op expected sizes that agree"):
            executable(x, y)


def test_an_index_map_that_divides_by_a_negative_number_is_refused() -> None:
    with pytest.raises(
        rx.RelaxError, match=r"'linalg\.generic' op expected index maps that divide by positive constants, got d0 mod -2"
    ):
        compiled(SUM.replace("MAP", "a mod -2"))


STATIC = """func.func @main(%x: tensor<XSHAPExf32>) -> tensor<YSHAPExf32> {
  %e = tensor.empty() : tensor<YSHAPExf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(DIMS) -> (MAP)>, affine_map<(DIMS) -> (DIMS)>],
                       iterator_types = [LOOPS]} ins(%x : tensor<XSHAPExf32>) outs(%e : tensor<YSHAPExf32>) {
  ^bb0(%j: f32, %o: f32):
    linalg.yield %j : f32
  } -> tensor<YSHAPExf32>
  return %0 : tensor<YSHAPExf32>
}"""


def moved(shape: tuple[int, ...], map_: str, size: int) -> rx.Executable:
    text = STATIC.replace("XSHAPE", str(size)).replace("YSHAPE", "x".join(map(str, shape))).replace("MAP", map_)
    dims, loops = ("a, b", '"parallel", "parallel"') if len(shape) == 2 else ("a", '"parallel"')
    return compiled(text.replace("DIMS", dims).replace("LOOPS", loops))


@pytest.mark.parametrize(
    ("shape", "map_", "least"),
    [
        ((7,), "a mod 3", 3),
        ((5,), "(a mod 4) floordiv 2", 2),
        ((7,), "a floordiv 2", 4),
        ((4,), "-a + 3", 4),
        ((3, 4), "a - b + 3", 6),
        ((3, 4), "a * 4 + b", 12),
    ],
)
def test_maps_of_known_sizes_are_inside_or_refused(shape: tuple[int, ...], map_: str, least: int) -> None:
    values = np.arange(least, dtype=np.float32)
    index = np.indices(shape)
    names = {"a": index[0], "b": index[-1]}
    expected = eval(map_.replace("mod", "%").replace("floordiv", "//"), {}, names)
    np.testing.assert_array_equal(moved(shape, map_, least)(guarded_copy(values)), expected)
    with pytest.raises(rx.RelaxError, match=r"linalg\.generic' op .*(sizes that agree|inferred|expected)"):
        moved(shape, map_, least - 1)(guarded_copy(values[1:]))


def test_a_map_whose_ends_are_inside_and_others_not_is_refused_when_it_is_called() -> None:
    with pytest.raises(rx.RelaxError, match=r"linalg\.generic' op expected sizes that agree"):
        moved((4, 4), "a - b", 4)(guarded_copy(np.zeros(4, np.float32)))


def test_functions_of_the_process_are_not_called() -> None:
    text = """func.func private @abs(i64) -> i64
func.func @main(%x: tensor<i64>) -> tensor<i64> {
  %a = tensor.extract %x[] : tensor<i64>
  %b = func.call @abs(%a) : (i64) -> i64
  %r = tensor.splat %b : tensor<i64>
  return %r : tensor<i64>
}"""
    with pytest.raises(rx.RelaxError, match=r"f\.mlir:4:8: 'func\.call' op expected a function with a body, got .* @abs"):
        compiled(text)


def test_named_operations_are_checked_too() -> None:
    executable = compiled("""func.func @main(%xx: tensor<?x?xf32, {sym = ["n", "k"]}>, %y: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %x = tensor.cast %xx : tensor<?x?xf32, {sym = ["n", "k"]}> to tensor<?x?xf32>
  %z = arith.constant dense<0.0> : tensor<2x2xf32>
  %0 = linalg.matmul ins(%x, %y : tensor<?x?xf32>, tensor<3x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}""")
    y = np.ones((3, 2), np.float32)
    assert executable(np.ones((2, 3), np.float32), y).tolist() == [[3, 3], [3, 3]]
    for shape in ((1, 3), (2, 2), (2, 4), (3, 3), (2000, 1000)):
        with pytest.raises(rx.RelaxError, match=r"'linalg\.matmul' op expected sizes that agree"):
            executable(guarded_copy(np.ones(shape, np.float32)), y)


def test_a_cast_to_more_than_there_is_is_refused_when_it_is_called() -> None:
    executable = compiled("""func.func @main(%xx: tensor<?xf32, {sym = ["n"]}>, %i: tensor<i64>) -> tensor<f32> {
  %x = tensor.cast %xx : tensor<?xf32, {sym = ["n"]}> to tensor<100000xf32>
  %j = tensor.extract %i[] : tensor<i64>
  %k = arith.index_cast %j : i64 to index
  %v = tensor.extract %x[%k] : tensor<100000xf32>
  %r = tensor.splat %v : tensor<f32>
  return %r : tensor<f32>
}""")
    assert executable(np.arange(100000, dtype=np.float32), np.array(7)) == 7
    with pytest.raises(rx.RelaxError, match=r"'tensor\.cast' op expected dimension 0 to be 100000"):
        executable(guarded_copy(np.ones(3, np.float32)), np.array(99999))


@pytest.mark.parametrize("parts", [*FAR, 0, 6])
def test_a_dimension_is_taken_apart_into_what_it_has(parts: int) -> None:
    executable = compiled("""func.func @main(%xx: tensor<?xf32, {sym = ["n"]}>, %i: tensor<i64>) -> tensor<f32> {
  %x = tensor.cast %xx : tensor<?xf32, {sym = ["n"]}> to tensor<?xf32>
  %j = tensor.extract %i[] : tensor<i64>
  %k = arith.index_cast %j : i64 to index
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, %k] : tensor<?xf32> into tensor<2x?xf32>
  %c = arith.constant 1 : index
  %v = tensor.extract %y[%c, %c] : tensor<2x?xf32>
  %r = tensor.splat %v : tensor<f32>
  return %r : tensor<f32>
}""")
    x = guarded_copy(np.arange(10, dtype=np.float32))
    assert executable(x, np.array(5)) == 6
    with pytest.raises(rx.RelaxError, match=r"'tensor\.expand_shape' op expected parts of dimension 0"):
        executable(x, np.array(parts))


FOREIGN = {
    "memref.alloc": """%m = memref.alloc() : memref<4xf32>
      %i = arith.constant 9 : index
      %v = memref.load %m[%i] : memref<4xf32>""",
    "llvm.inttoptr": """%i = arith.constant 8 : i64
      %p = llvm.inttoptr %i : i64 to !llvm.ptr
      %v = llvm.load %p : !llvm.ptr -> f32""",
    "vector.transfer_read": """%i = arith.constant 9 : index
      %z = arith.constant 0.0 : f32
      %w = vector.transfer_read %x[%i], %z {in_bounds = [true]} : tensor<4xf32>, vector<4xf32>
      %v = vector.extract %w[0] : f32 from vector<4xf32>""",
    "tensor.gather": """%i = arith.constant dense<9> : tensor<1x1xindex>
      %g = tensor.gather %x[%i] gather_dims([0]) : (tensor<4xf32>, tensor<1x1xindex>) -> tensor<1xf32>
      %c = arith.constant 0 : index
      %v = tensor.extract %g[%c] : tensor<1xf32>""",
    "linalg.pack": """%e = tensor.empty() : tensor<2x2xf32>
      %p = linalg.pack %x inner_dims_pos = [0] inner_tiles = [2] into %e : tensor<4xf32> -> tensor<2x2xf32>
      %c = arith.constant 0 : index
      %v = tensor.extract %p[%c, %c] : tensor<2x2xf32>""",
}


@pytest.mark.parametrize("op", FOREIGN)
def test_operations_that_nobody_checks_are_refused(op: str) -> None:
    with pytest.raises(rx.RelaxError, match=rf"'{op}' op expected an operation "):
        compiled(f"""func.func @main(%x: tensor<4xf32>) -> tensor<f32> {{
      {FOREIGN[op]}
      %r = tensor.splat %v : tensor<f32>
      return %r : tensor<f32>
    }}""")


def test_loops_without_turns_are_not_refused() -> None:
    """Of ``a * 2 + 3`` at the last turn, which there is none of."""
    executable = compiled(SUM.replace("MAP", "a * 2 + 3"))
    assert executable(guarded_copy(np.ones(0, np.float32)), guarded_copy(np.ones(0, np.float32))) == 0


def test_a_loop_without_turns_in_one_operand_has_none_in_another() -> None:
    text = SUM.replace('%xx: tensor<?xf32, {sym = ["n"]}>', "%x: tensor<0xf32>").replace("MAP", "a")
    text = text.replace('%x = tensor.cast %xx : tensor<?xf32, {sym = ["n"]}> to tensor<?xf32>', "")
    executable = compiled(text.replace("ins(%x, %y : tensor<?xf32>", "ins(%x, %y : tensor<0xf32>"))
    assert executable(np.ones(0, np.float32), np.ones(0, np.float32)) == 0
    with pytest.raises(rx.RelaxError, match=r"'linalg\.generic' op expected sizes that agree"):
        executable(np.ones(0, np.float32), np.ones(1, np.float32))


@pytest.mark.parametrize("map_", ["a floordiv 3", "a * 2", "a + 3", "2"])
def test_where_an_inner_loop_has_no_turn_the_outer_one_reads_nothing(map_: str) -> None:
    """What only the outer loop changes is read in front of the inner one."""
    executable = compiled(f"""
func.func @main(%xx: tensor<?xf32, {{sym = ["k"]}}>, %yy: tensor<?x?xf32, {{sym = ["n", "m"]}}>) -> tensor<f32> {{
  %x = tensor.cast %xx : tensor<?xf32, {{sym = ["k"]}}> to tensor<?xf32>
  %y = tensor.cast %yy : tensor<?x?xf32, {{sym = ["n", "m"]}}> to tensor<?x?xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %0 = linalg.generic {{indexing_maps = [affine_map<(a, b) -> ({map_})>, affine_map<(a, b) -> (a, b)>,
                                        affine_map<(a, b) -> ()>],
                       iterator_types = ["reduction", "reduction"]}}
      ins(%x, %y : tensor<?xf32>, tensor<?x?xf32>) outs(%z : tensor<f32>) {{
  ^bb0(%j: f32, %k: f32, %o: f32):
    %v = arith.mulf %j, %j : f32
    %w = arith.addf %v, %o : f32
    linalg.yield %w : f32
  }} -> tensor<f32>
  return %0 : tensor<f32>
}}""")
    for edge in ("start", "end"):
        assert executable(guarded_copy(np.ones(0, np.float32), edge), guarded_copy(np.ones((4000, 0), np.float32), edge)) == 0
    with pytest.raises(rx.RelaxError, match=r"'linalg\.generic' op expected sizes that agree"):
        executable(np.ones(0, np.float32), np.ones((4, 1), np.float32))


DIVIDED = """func.func @main(%x: tensor<i64>) -> tensor<i64> {
  %a = tensor.extract %x[] : tensor<i64>
  %i = arith.index_cast %a : i64 to index
  %c = arith.constant 3 : index
  %k = affine.OP affine_map<(d0)[s0] -> (EXPR)>(%i)[BY]
  %m = arith.index_cast %k : index to i64
  %r = tensor.from_elements %m : tensor<i64>
  return %r : tensor<i64>
}"""


#: Expressions of MLIR as Python has them.
EXPRESSIONS = {
    "d0 floordiv s0": "d0 // s0",
    "d0 ceildiv s0 + 1": "-(-d0 // s0) + 1",
    "(d0 + 1) mod s0": "(d0 + 1) % s0",
    "(d0 floordiv s0) * 2": "d0 // s0 * 2",
    "d0 floordiv (s0 floordiv (s0 - 2))": "d0 // (s0 // (s0 - 2))",
}


@pytest.mark.parametrize("op", ["apply", "min", "max"])
@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_affine_division_is_by_what_is_positive(op: str, expr: str) -> None:
    text = DIVIDED.replace("OP", op).replace("EXPR", expr)
    executable = compiled(text.replace("BY", "%i"))
    for number in (3, 7):
        assert executable(np.int64(number)) == eval(EXPRESSIONS[expr], {}, {"d0": number, "s0": number})
    for number in (0, -1, -(2**63)):
        with pytest.raises(rx.RelaxError, match=rf"f\.mlir:5:8: 'affine\.{op}' op expected to divide by what is positive"):
            executable(np.int64(number))
    assert compiled(text.replace("BY", "%c"))(np.int64(7)) == eval(EXPRESSIONS[expr], {}, {"d0": 7, "s0": 3})


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_affine_division_in_a_body_is_by_what_is_positive_in_every_turn(expr: str) -> None:
    executable = compiled(f"""
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {{
  %0 = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x : tensor<4xi64>) outs(%x : tensor<4xi64>) {{
  ^bb0(%n: i64, %o: i64):
    %s = arith.index_cast %n : i64 to index
    %i = linalg.index 0 : index
    %k = affine.apply affine_map<(d0)[s0] -> ({expr})>(%i)[%s]
    %m = arith.index_cast %k : index to i64
    linalg.yield %m : i64
  }} -> tensor<4xi64>
  return %0 : tensor<4xi64>
}}""")
    by = np.array([3, 4, 5, 9])
    expected = [eval(EXPRESSIONS[expr], {}, {"d0": i, "s0": int(n)}) for i, n in enumerate(by)]
    np.testing.assert_array_equal(executable(by), expected)
    for wrong in (0, -3):
        with pytest.raises(rx.RelaxError, match=r"'affine\.apply' op expected to divide by what is positive in every turn"):
            executable(np.array([3, 4, wrong, 9]))


@pytest.mark.parametrize(
    ("line", "type_"),
    [
        ("arith.divsi %x, %x : tensor<3xi64>", "3xi64"),
        ("arith.addi %x, %x : tensor<3xi64>", "3xi64"),
        ("math.absi %x : tensor<3xi64>", "3xi64"),
        ("arith.index_cast %x : tensor<3xi64> to tensor<3xindex>", "3xi64"),
        ("arith.select %c, %x, %x : tensor<3xi1>, tensor<3xi64>", "3xi1"),
    ],
)
def test_arithmetic_on_whole_tensors_is_refused_as_evaluate_refuses_it(line: str, type_: str) -> None:
    head = "func.func @main(%x: tensor<3xi64>, %c: tensor<3xi1>) -> tensor<3xi64> {"
    text = f"{head}\n  %0 = {line}\n  return %x : tensor<3xi64>\n}}"
    name = line.partition(" ")[0].replace(".", r"\.")
    with pytest.raises(rx.RelaxError, match=rf"f\.mlir:2:8: '{name}' op expected scalars, got tensor<{type_}>"):
        compiled(text)


def test_one_of_two_tensors_is_chosen() -> None:
    text = """func.func @main(%x: tensor<3xi64>, %y: tensor<3xi64>, %t: tensor<i1>) -> tensor<3xi64> {
  %c = tensor.extract %t[] : tensor<i1>
  %0 = arith.select %c, %x, %y : tensor<3xi64>
  return %0 : tensor<3xi64>
}"""
    executable = compiled(text)
    for truth in (False, True):
        assert executable(np.zeros(3, np.int64), np.ones(3, np.int64), np.bool_(truth)).tolist() == [int(not truth)] * 3


@pytest.mark.parametrize("given", ["%a", "%three"])
def test_a_reduction_without_a_turn_is_what_it_starts_from(given: str) -> None:
    """Nobody reads the start of such a body, so upstream fusion takes it away."""
    executable = compiled(f"""func.func @main(%x: tensor<?x?xi64, {{sym = ["n", "m"]}}>) -> tensor<?xi64, {{sym = ["n"]}}> {{
  %xx = tensor.cast %x : tensor<?x?xi64, {{sym = ["n", "m"]}}> to tensor<?x?xi64>
  %zero = arith.constant 0 : index
  %seven = arith.constant 7 : i64
  %n = tensor.dim %xx, %zero : tensor<?x?xi64>
  %e = tensor.empty(%n) : tensor<?xi64>
  %start = linalg.fill ins(%seven : i64) outs(%e : tensor<?xi64>) -> tensor<?xi64>
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}} ins(%xx : tensor<?x?xi64>) outs(%start : tensor<?xi64>) {{
  ^bb0(%a: i64, %o: i64):
    %three = arith.constant 3 : i64
    linalg.yield {given} : i64
  }} -> tensor<?xi64>
  %w = tensor.cast %y : tensor<?xi64> to tensor<?xi64, {{sym = ["n"]}}>
  return %w : tensor<?xi64, {{sym = ["n"]}}>
}}""")
    assert executable(np.zeros((4, 0), np.int64)).tolist() == [7] * 4
    assert executable(np.array([[5, 3], [6, 3]])).tolist() == [3] * 2


@pytest.mark.parametrize(
    ("kind", "number", "body"),
    [
        ("i64", "0", "%m = arith.muli %a, %b : i64\n    %v = arith.muli %o, %m : i64"),
        ("i64", "0", "%v = arith.andi %o, %a : i64"),
        ("i1", "1", "%v = arith.select %a, %b, %o : i64"),
    ],
)
def test_a_reduction_is_what_it_starts_from_where_fusion_brings_in_a_number(kind: str, number: str, body: str) -> None:
    """With the number, nobody reads the start."""
    maps = "affine_map<(d0, d1) -> (d0, d1)>"
    executable = compiled(f"""func.func @main(%x: tensor<?x4xi64, {{sym = ["n"]}}>, %start: tensor<4xi64>) -> tensor<4xi64> {{
  %xx = tensor.cast %x : tensor<?x4xi64, {{sym = ["n"]}}> to tensor<?x4xi64>
  %zero = arith.constant 0 : index
  %number = arith.constant {number} : {kind}
  %n = tensor.dim %xx, %zero : tensor<?x4xi64>
  %e = tensor.empty(%n) : tensor<?x4x{kind}>
  %p = linalg.generic {{indexing_maps = [{maps}, {maps}], iterator_types = ["parallel", "parallel"]}}
      ins(%xx : tensor<?x4xi64>) outs(%e : tensor<?x4x{kind}>) {{
  ^bb0(%a: i64, %o: {kind}):
    linalg.yield %number : {kind}
  }} -> tensor<?x4x{kind}>
  %y = linalg.generic {{indexing_maps = [{maps}, {maps}, affine_map<(d0, d1) -> (d1)>],
      iterator_types = ["reduction", "parallel"]}}
      ins(%p, %xx : tensor<?x4x{kind}>, tensor<?x4xi64>) outs(%start : tensor<4xi64>) {{
  ^bb0(%a: {kind}, %b: i64, %o: i64):
    {body}
    linalg.yield %v : i64
  }} -> tensor<4xi64>
  %r = "relax.negative"(%y) : (tensor<4xi64>) -> tensor<4xi64>
  return %r : tensor<4xi64>
}}""")
    assert executable(np.zeros((0, 4), np.int64), np.arange(5, 9)).tolist() == [-5, -6, -7, -8]
