"""What kernels of every backend are made with: linalg operations read as plain data, and code built from their bodies."""
