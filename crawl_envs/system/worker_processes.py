"""Worker processes that ignore interrupts and end with this process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of worker processes, which are killed if the block raises an exception.

    Each worker uses one thread, unless OMP_NUM_THREADS is set: threads of several workers would
    wait for each other.
    """
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)
    try:
        with _environment("OMP_NUM_THREADS", "1"):
            yield executor
    except BaseException:
        _kill(executor)
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for processes that start in the block, unless it is set."""
    missing = name not in os.environ
    if missing:
        os.environ[name] = value
    try:
        yield
    finally:
        if missing:
            del os.environ[name]


def _kill(executor: ProcessPoolExecutor) -> None:
    """Kill the workers of a pool, ignoring further interrupts."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The standard library has a public way to kill workers only from Python 3.14 on.
    for process in tuple((executor._processes or {}).values()):
        process.kill()


def _begin() -> None:
    """Make this worker process ignore interrupts, and end when its parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
