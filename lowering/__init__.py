"""Relax to machine code: relax -> linalg on tensors -> kernels on buffers -> LLVM -> object code."""
