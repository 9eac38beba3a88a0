"""What all templates build code with: operations, memory, offsets, scalar bodies over vectors."""
