"""``from_onnx``: ONNX models as relax modules."""
