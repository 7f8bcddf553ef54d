"""Files are replaced at once or not at all."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from crawl_envs.system.files import claim, claiming, replacing


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write() -> None:
        with replacing(path) as unfinished:
            unfinished.write_text("half of the n")
            raise RuntimeError("full")

    with pytest.raises(RuntimeError):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (OSError(errno.ENOSPC, "full"), "file"),
        (OSError(errno.ENOSPC, "full", "other"), "other"),
        (OSError("no number"), None),
    ],
)
def test_an_error_of_the_system_names_the_file(
    tmp_path: Path, error: OSError, name: str | None
) -> None:
    caught = pytest.raises(OSError, match=str(error.strerror or error))
    with caught as raised, replacing(tmp_path / "file"):
        raise error
    assert (raised.value.filename and Path(raised.value.filename).name) == name
    assert not list(tmp_path.iterdir())


# Folders that one process writes to

ANOTHER = """
import sys
from crawl_envs.system.files import claim
try:
    claim(sys.argv[1])
except ValueError as error:
    sys.exit(str(error))
"""


def another_claims(folder):
    """The error of another process that claims a folder; empty if it can."""
    done = subprocess.run([sys.executable, "-c", ANOTHER, folder], capture_output=True, text=True)
    return done.stderr.strip()


def test_a_claimed_folder_is_refused_to_another_process_until_the_block_ends(tmp_path):
    with claiming():
        claim(tmp_path)
        claim(tmp_path / ".")  # the same one, of the same process
        with claiming():
            claim(tmp_path)
        words = f"another run is writing to {tmp_path}: wait for its end, or name another folder"
        assert another_claims(tmp_path) == words
    assert another_claims(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_free_after_its_run_failed(tmp_path):
    @claiming()
    def failing():
        claim(tmp_path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failing()
    assert another_claims(tmp_path) == ""
