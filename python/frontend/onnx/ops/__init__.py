"""What converts the nodes of ONNX operators; importing it fills :data:`..node.HANDLERS`."""
