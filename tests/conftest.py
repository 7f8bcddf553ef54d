"""Windows that tests open are not shown; one thread per process; the browser that opens pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from typing import Any

import pytest

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
# There is a process of tests per processor: threads of BLAS or PyTorch would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Return one process more than processors, as some tests wait for others' processes."""
    processors = yield
    return processors + ("PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browsers = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    binary, service = next(filter(None, browsers), None), shutil.which("chromedriver")
    if binary is None or service is None:
        pytest.skip("there is no chromium with its chromedriver to open pages in")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    folder = tmp_path_factory.mktemp("browser")
    for word in (
        *("headless=new", "no-sandbox", "disable-gpu", "no-first-run", "disable-sync"),
        *("disable-background-networking", "disable-component-update", "disable-dev-shm-usage"),
        f"user-data-dir={folder}",
    ):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(service))
    yield found
    found.quit()
