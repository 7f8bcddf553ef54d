"""Words in pictures, in the font that comes with Pillow."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

Coverage = NDArray[np.float32]
"""Share of each pixel that letters cover, in [0, 1], (H, W, 1)."""


@lru_cache(maxsize=8)
def _font(size: int) -> Any:
    try:
        from PIL import ImageFont
    except ImportError as error:
        raise DependencyNotInstalled(
            "pictures of environments need Pillow: pip install 'crawl-envs[video]'"
        ) from error
    return ImageFont.load_default(size)


@lru_cache(maxsize=1024)
def lettered(words: str, size: int) -> Coverage:
    """Return a line of words in letters of ``size`` pixels, read-only.

    Raises:
        gymnasium.error.DependencyNotInstalled: Pillow is missing.
    """
    font = _font(size)
    from PIL import Image, ImageDraw

    image = Image.new("L", (max(math.ceil(font.getlength(words)), 1), round(1.25 * size)))
    ImageDraw.Draw(image).text((0, 0), words, fill=255, font=font)
    coverage: Coverage = np.asarray(image, np.float32)[:, :, None] / np.float32(255.0)
    coverage.setflags(write=False)
    return coverage


def write(
    picture: NDArray[np.uint8],
    words: str,
    place: tuple[int, int],
    colour: tuple[int, int, int],
    *,
    size: int = 13,
    align: float = 0.0,
) -> int:
    """Write a line into a picture, and return its width in pixels.

    Args:
        picture: (H, W, 3) uint8, which is changed; what lies outside is cut off.
        words: the line.
        place: x and y of its upper corner, in pixels.
        colour: red, green and blue.
        size: height of the letters, in pixels.
        align: share of the width that lies left of x: 0, 0.5 or 1.
    """
    coverage = lettered(words, size)
    height, width = map(int, coverage.shape[:2])
    left, top = max(place[0] - round(align * width), 0), max(place[1], 0)
    behind = picture[top : top + height, left : left + width]
    cover = coverage[: behind.shape[0], : behind.shape[1]]
    behind[:] = behind + (np.array(colour, np.float32) - behind) * cover
    return width
