"""Code generation for CPUs: buffers, kernels, LLVM IR, object code."""
