"""Models as programs for other places: ONNX graphs."""
