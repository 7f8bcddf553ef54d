"""A window that shows pictures, for the render mode ``human``."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

TITLE = "crawl_envs"


class Window:
    """A pygame window that opens with its first picture; a copied Window object is closed."""

    def __init__(self) -> None:
        self._pygame: Any = None

    def show(self, picture: NDArray[np.uint8], frames_per_second: float) -> None:
        """Show a picture, (H, W, 3), and wait until it is due.

        Raises:
            gymnasium.error.DependencyNotInstalled: pygame is missing.
        """
        if self._pygame is None:
            self._open(picture.shape[1], picture.shape[0])
        pygame = self._pygame
        pygame.surfarray.blit_array(self._screen, picture.swapaxes(0, 1))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(frames_per_second)

    def _open(self, width: int, height: int) -> None:
        try:
            import pygame
        except ImportError as error:
            raise DependencyNotInstalled(
                "render_mode 'human' needs pygame: pip install 'crawl-envs[video]'"
            ) from error
        pygame.display.init()
        self._screen = pygame.display.set_mode((width, height))
        pygame.display.set_caption(TITLE)
        self._clock, self._pygame = pygame.time.Clock(), pygame

    def close(self) -> None:
        """Close the window, if it is open."""
        if self._pygame is not None:
            self._pygame.display.quit()
            self._pygame = None

    def __reduce__(self) -> tuple[type[Window], tuple[()]]:
        return Window, ()
