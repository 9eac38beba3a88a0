"""How encoded checkpoints are read: per format which tensors make a weight, and by what relax ops; imports no MLIR."""
