"""ResNet-18, exported by both of PyTorch's exporters."""
