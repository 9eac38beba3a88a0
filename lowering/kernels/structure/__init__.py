"""What a linalg operation on buffers says by its structure: loops, roles of operands, products; no code is built here."""
