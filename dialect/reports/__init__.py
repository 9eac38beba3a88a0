"""What passes decided and why: sections that are dataclasses, text and JSON; imports no MLIR."""
