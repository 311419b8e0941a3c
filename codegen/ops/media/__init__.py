"""Rules of operators on images, boxes, signals and text.

In: pixels, coordinates, samples or strings. Out: functions of the runtime.
Invariant: coordinates and windows follow the specification's reference.
"""

from burnish.codegen.ops.media import boxes, image, signal, text

__all__ = ["boxes", "image", "signal", "text"]
