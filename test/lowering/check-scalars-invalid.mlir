// RUN: relax-opt --split-input-file --verify-diagnostics --relax-check-scalars %s

func.func @map(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{'linalg.generic' op expected index maps that divide by positive constants, got d0 mod -2}}
  %0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a mod -2)>, affine_map<(a) -> (a)>],
                       iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%j: f32, %o: f32):
    linalg.yield %j : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @part(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.map ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) (%i: f32, %o: f32) {
    %c = arith.constant 0 : index
    // expected-error@+1 {{'tensor.extract_slice' op expected outside of linalg.map}}
    %p = tensor.extract_slice %x[%c] [1] [1] : tensor<4xf32> to tensor<1xf32>
    %d = tensor.extract %p[%c] : tensor<1xf32>
    linalg.yield %d : f32
  }
  return %0 : tensor<4xf32>
}
