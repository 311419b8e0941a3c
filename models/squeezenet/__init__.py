"""SqueezeNet 1.1, exported by both of PyTorch's exporters."""
