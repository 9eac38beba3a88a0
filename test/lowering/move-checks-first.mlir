// RUN: relax-opt %s --relax-move-checks-first | filecheck %s

func.func private @relax_check(i1, i64)
func.func private @work(tensor<?xf32>) -> tensor<?xf32>

// The number says that nothing has been done: 2**32 more.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: %[[OK:.*]] = arith.cmpi eq, %[[N]]
// CHECK: %[[EARLY:.*]] = arith.constant 4294967299 : i64
// CHECK: call @relax_check(%[[OK]], %[[EARLY]])
// CHECK: call @work(%[[X]])
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @work(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %c0 = arith.constant 0 : index
  %c1000 = arith.constant 1000 : index
  %number = arith.constant 3 : i64
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %ok = arith.cmpi eq, %n, %c1000 : index
  call @relax_check(%ok, %number) : (i1, i64) -> ()
  return %0 : tensor<?xf32>
}

// One that the result of work decides stays behind that.
// CHECK-LABEL: func.func @data(
// CHECK: call @work
// CHECK: call @relax_check
func.func @data(%x: tensor<?xf32>, %at: index) -> tensor<?xf32> {
  %0 = call @work(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %number = arith.constant 1 : i64
  %v = tensor.extract %0[%at] : tensor<?xf32>
  %ok = arith.cmpf oeq, %v, %v : f32
  call @relax_check(%ok, %number) : (i1, i64) -> ()
  return %0 : tensor<?xf32>
}

// It comes right behind its values, before what it is about, and behind the checks before it.
// CHECK-LABEL: func.func @soon(
// CHECK: %[[V:.*]] = tensor.extract
// CHECK: %[[FIRST:.*]] = arith.cmpf oeq, %[[V]]
// CHECK: call @relax_check(%[[FIRST]]
// CHECK: %[[SECOND:.*]] = arith.cmpf ole, %[[V]]
// CHECK: call @relax_check(%[[SECOND]]
// CHECK: call @work
// CHECK: tensor.extract
// CHECK: call @relax_check
func.func @soon(%x: tensor<?xf32>, %at: index) -> tensor<?xf32> {
  %number = arith.constant 1 : i64
  %v = tensor.extract %x[%at] : tensor<?xf32>
  %0 = call @work(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %ok = arith.cmpf oeq, %v, %v : f32
  call @relax_check(%ok, %number) : (i1, i64) -> ()
  %w = tensor.extract %0[%at] : tensor<?xf32>
  %second = arith.cmpf ole, %v, %v : f32
  call @relax_check(%second, %number) : (i1, i64) -> ()
  %third = arith.cmpf ole, %w, %v : f32
  call @relax_check(%third, %number) : (i1, i64) -> ()
  return %0 : tensor<?xf32>
}
