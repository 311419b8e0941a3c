"""How likely is a picture unsuitable for work?

    python -m burnish.models.open_nsfw.infer [PICTURE ...]

Picture files are read with Pillow (`pip install pillow`); without any, two pictures are
drawn here. Yahoo's advice: below 0.2 it is safe, above 0.8 it is not.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import numpy as np

from burnish.models._gallery import weights
from burnish.models._originals import OriginalError
from burnish.models.open_nsfw.open_nsfw import Model

MEAN = np.array([104, 117, 123], np.float32)  # of blue, green and red
SIZE = 224


def prepared(picture: np.ndarray) -> np.ndarray:
    """Red, green and blue from 0 to 255, (224, 224, 3), as the network takes them."""
    return picture[None, :, :, ::-1].astype(np.float32) - MEAN


def opened(path: Path) -> np.ndarray:
    """A file as the network knows pictures: 256 wide, once a JPEG, its centre."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise OriginalError(
            f"{path} is read with Pillow; run: pip install pillow"
        ) from None
    with Image.open(path) as image:
        small = image.convert("RGB").resize((256, 256), Image.Resampling.BILINEAR)
    packed = io.BytesIO()
    small.save(packed, "JPEG")
    edge = (256 - SIZE) // 2
    return np.asarray(Image.open(packed))[edge : edge + SIZE, edge : edge + SIZE]


def drawn() -> dict[str, np.ndarray]:
    """A sunset over the sea, and a chessboard."""
    y, x = np.mgrid[0 : 1 : SIZE * 1j, 0 : 1 : SIZE * 1j]
    sky = np.stack([255 - 80 * y, 120 + 60 * y, 90 + 100 * (1 - y)], axis=-1)
    sky[np.hypot(x - 0.5, y - 0.5) < 0.15] = 255, 220, 90
    sky[y > 0.6] = 20, 60, 110
    board = ((x * 7.99).astype(int) + (y * 7.99).astype(int)) % 2
    return {
        "a sunset": sky,
        "a chessboard": np.repeat(board[..., None] * 200.0 + 30, 3, axis=-1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pictures", nargs="*", type=Path, metavar="PICTURE")
    options = parser.parse_args()
    try:
        pictures = {str(path): opened(path) for path in options.pictures} or drawn()
        model = Model.from_file(weights("open_nsfw"))
    except (OriginalError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, picture in pictures.items():
        safe, unsafe = np.asarray(model(prepared(picture)))[0]
        print(f"{name}: safe {safe:.3f}, not safe {unsafe:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
