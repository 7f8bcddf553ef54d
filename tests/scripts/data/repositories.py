"""Small git repositories with known histories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

DAY = 86400
ORIGIN = 1704067200
"""Monday, 2024-01-01 00:00 UTC, in seconds since 1970."""


class Scratch:
    """A repository that is written commit by commit; times are days since 2024-01-01."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, **variables: str) -> str:
        """Run git with nothing of the user's or the system's settings."""
        plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        people = {
            f"GIT_{role}_{what}": said
            for role in ("AUTHOR", "COMMITTER")
            for what, said in (("NAME", "A"), ("EMAIL", "a@example.org"))
        }
        command = ["git", "-C", str(self.folder), *arguments]
        environment = os.environ | plain | people | variables
        done = subprocess.run(
            command, env=environment, capture_output=True, check=True, stdin=subprocess.DEVNULL
        )
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")

    def remove(self, path: str) -> None:
        (self.folder / path).unlink()

    def move(self, old: str, new: str) -> None:
        target = self.folder / new
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.folder / old).rename(target)

    def commit(
        self,
        day: float,
        files: Mapping[str, str | None] = MappingProxyType({}),
        subject: str = "Edit",
        authored: float | None = None,
    ) -> None:
        """Write files, or remove those of None, and commit everything that is in the folder."""
        for path, text in files.items():
            if text is None:
                self.remove(path)
            else:
                self.write(path, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject, **dates(day, authored))

    def merge(self, branch: str, day: float) -> None:
        self.git("merge", "--quiet", "--no-ff", "-m", f"Merge {branch}", branch, **dates(day))


def dates(day: float, authored: float | None = None) -> dict[str, str]:
    """The variables that make git believe that it is ``day``."""
    author = day if authored is None else authored
    return {
        "GIT_COMMITTER_DATE": f"{round(ORIGIN + day * DAY)} +0000",
        "GIT_AUTHOR_DATE": f"{round(ORIGIN + author * DAY)} +0000",
    }


def prose(name: str, lines: int = 12) -> str:
    """Lines that no other name shares a shingle with."""
    return "".join(f"{name} says line {row} of {name}\n" for row in range(lines))
