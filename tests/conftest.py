"""Windows that tests open are not shown."""

import os

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
