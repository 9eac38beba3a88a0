"""What the IR means: the Relax dialect, symbolic shapes, reference semantics and relax-to-relax passes."""
