"""Running code on NVIDIA GPUs: the driver, memory of the device, entries. Needs libcuda, no MLIR and nothing else of CUDA."""

from .runtime import CudaRuntime

__all__ = ["CudaRuntime"]
