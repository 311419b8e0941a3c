"""The convolutional network of the Burn Book's guide, trained on MNIST."""
