"""What tests do with the browser of the fixture ``driver``."""

from __future__ import annotations

from typing import Any


def emulate(driver: Any, *, width: int, scheme: str = "light", media: str = "screen") -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    wanted = {"media": media, "features": features}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)


def wait(driver: Any, condition: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60).until(lambda found: found.execute_script(f"return {condition}"))
