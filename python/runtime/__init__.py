"""Running compiled code: artifacts, weight preparation, binding and calling. Imports no MLIR."""
