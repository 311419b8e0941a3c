"""What the page asks: drawings become what MNIST has, then the network reads them."""

import numpy as np
from mnist import Model

LABELS = range(10)
BOX, INK = 20, 0.1

model = Model.from_file()


def predict(images):
    """Logits of drawings (1, 28, 28) with values 0 to 1, white on black."""
    return model((centred(images[0])[None] - np.float32(0.1307)) / np.float32(0.3081))


def centred(image):
    """The digit 20 pixels large with its centre of mass in the middle.

    So the digits of MNIST were made: http://yann.lecun.com/exdb/mnist/.
    """
    rows, columns = np.nonzero(image > INK)
    if not len(rows):
        return image
    scale = max(np.ptp(rows), np.ptp(columns), 1) / BOX
    mass = image.sum()
    middle = (len(image) - 1) / 2
    steps = (np.arange(len(image)) - middle) * scale
    y = (image.sum(1) @ np.arange(image.shape[0])) / mass + steps
    x = (image.sum(0) @ np.arange(image.shape[1])) / mass + steps
    return (_between(y, image.shape[0]) @ image @ _between(x, image.shape[1]).T).astype(
        np.float32
    )


def _between(places, size):
    """Weights that interpolate linearly at places, nothing beyond the edges."""
    return np.maximum(0, 1 - np.abs(places[:, None] - np.arange(size)))
