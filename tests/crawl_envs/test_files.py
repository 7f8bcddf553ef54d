"""Files are replaced at once or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from crawl_envs.types.files import replacing


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
