"""Serve the page of :mod:`policies.live.adapters.overview` from the process of a crawl."""

from __future__ import annotations

import logging
import socket
import threading
from importlib.util import find_spec
from typing import Any

from crawl_envs.types.arguments import whole
from policies.live.adapters.messages import Scheduler


def listen(port: int, name: str = "port") -> socket.socket:
    """Open a socket that listens to a port of this machine; errors call the port ``name``.

    Raises:
        ValueError: the port cannot be used, or the extra ``live`` is not installed.
    """
    port = whole(name, port, 1, 65_535)
    for package in ("prometheus_client", "starlette", "uvicorn"):
        if find_spec(package) is None:
            raise ValueError(f"{name} needs the extra live: {package} is not installed")
    # with its protocol named, asyncio sends answers without delay (TCP_NODELAY)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except OSError as error:
        listening.close()
        reason = f"{error.strerror}; choose another port"
        raise ValueError(f"{name} must be free, got {port}: {reason}") from None
    return listening


class Watch:
    """Serve the page to watch in a thread, on a socket of :func:`listen`.

    ``about`` is as for :class:`policies.live.adapters.endpoint.Metrics`.
    """

    def __init__(self, scheduler: Scheduler, listening: socket.socket, *about: Any) -> None:
        import uvicorn

        from policies.live.adapters.endpoint import Metrics, page_to_watch

        self.metrics = Metrics(scheduler, *about)
        quiet: Any = {"log_config": None, "log_level": "warning", "lifespan": "off"}
        application = page_to_watch(self.metrics)
        self.server = uvicorn.Server(
            uvicorn.Config(application, timeout_graceful_shutdown=1, **quiet)
        )
        sockets = {"sockets": [listening]}
        self.thread = threading.Thread(target=self.server.run, kwargs=sockets, daemon=True)
        self.thread.start()
        self.address = f"http://127.0.0.1:{listening.getsockname()[1]}/"

    def announce(self) -> None:
        """Log the address of the page to watch, at the first call only."""
        if self.address:
            logging.getLogger(__name__).info("The page to watch is %s", self.address)
        self.address = ""

    def close(self) -> None:
        """Stop serving the page, and wait for the thread to end."""
        self.server.should_exit = True
        self.thread.join()
