"""What every ONNX operator means, one function an operator, by family."""
