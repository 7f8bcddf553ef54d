"""Interrupts before a command begins end in one line, those of workers in none."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

RAISE = "import scripts; raise {}"
SPAWN = """
import multiprocessing, os, sys
if __name__ == "__main__":
    import scripts
    multiprocessing.get_context("spawn").Process(target=print).start()
else:
    import scripts
    raise KeyboardInterrupt
"""


@pytest.mark.parametrize(
    ("error", "last"),
    [("KeyboardInterrupt", "stopped; nothing was written"), ("ValueError('x')", "ValueError: x")],
)
def test_an_error_during_imports(error: str, last: str) -> None:
    command = [sys.executable, "-c", RAISE.format(error)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == last
    assert ("Traceback" in done.stderr) == (error != "KeyboardInterrupt")
    assert done.returncode == (-signal.SIGINT if error == "KeyboardInterrupt" else 1)


def test_an_interrupted_worker_says_nothing(tmp_path) -> None:
    script = tmp_path / "command.py"
    script.write_text(SPAWN)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
