"""Weights on disk: safetensors checkpoints read by mapping and written as a stream. Imports no MLIR."""

from .arrays import ArraySpec
from .safetensors import Checkpoint, LazyTensor, StreamWriter, write_safetensors
from .source import TensorSource

__all__ = ["ArraySpec", "Checkpoint", "LazyTensor", "StreamWriter", "TensorSource", "write_safetensors"]
