"""The main line of a git repository, as commits and the files they touch.

Only the git command line is used, read-only. Data are streamed: one commit or one blob at a time.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

RENAME_LIMIT = 1000
"""Number of added and removed files of a commit above which only exact renames are detected."""
READ_BYTES = 1 << 20
HEADER = "%x1e%H%x1f%s"
FIXED = (
    "-c", "core.quotePath=false", "-c", "log.showSignature=false", "-c", "log.showRoot=true",
    "-c", "log.follow=false",
)  # fmt: skip
NUMSTAT = re.compile(rb"(\d+|-)\t(\d+|-)\t")


class Link(NamedTuple):
    """One commit of the main line; times are seconds since 1970.

    ``authored`` is the author's time; for a merge, that of the merged tip.
    """

    hash: str
    committed: int
    authored: int
    is_merge: bool


class Touch(NamedTuple):
    """One entry of a commit: path and blob before and after, or None.

    Entries other than regular files (links, submodules) have a path but no blob.
    """

    old_path: str | None
    new_path: str | None
    old_blob: str | None
    new_blob: str | None
    lines_added: int
    lines_removed: int


class Commit(NamedTuple):
    """A commit: hash, first line of the message, and touched files."""

    hash: str
    subject: str
    touches: list[Touch]


@dataclass(frozen=True)
class Repository:
    """A git repository on disk, checked by ``open_repository``."""

    path: Path
    head: str

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.resolve().name.removesuffix(".git")


def open_repository(path: str | Path) -> Repository:
    """Open the repository with the top folder (or bare folder) ``path``.

    Raises:
        ValueError: git is not installed, ``path`` is no repository or a subfolder of one, or there
            is no commit.
    """
    path = Path(path)
    if not path.is_dir():
        raise ValueError(f"repository must be a folder, got {str(path)!r}")
    prefix = _output(path, ["rev-parse", "--show-prefix"]).strip()
    if prefix:
        raise ValueError(
            f"{path} is inside a repository; use its top folder and --subdir {prefix!r}"
        )
    try:
        head = _output(path, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).strip()
    except ValueError:
        raise ValueError(f"{path}: the repository has no commits") from None
    return Repository(path, head)


def main_line(repository: Repository, subdirs: Sequence[str] = ()) -> list[Link]:
    """Return the first-parent chain of HEAD, oldest first.

    Args:
        repository: the repository.
        subdirs: only commits that touch one of these folders, if any.
    """
    chain = _output(
        repository.path,
        [
            "log",
            "--first-parent",
            "--reverse",
            "--format=%H %ct %at %P",
            repository.head,
            *_pathspec(subdirs),
        ],
    )
    rows = [line.split() for line in chain.splitlines()]
    tips = [row[4] for row in rows if len(row) > 4]
    authored = _author_times(repository, tips)
    return [
        Link(row[0], int(row[1]), authored[row[4]] if len(row) > 4 else int(row[2]), len(row) > 4)
        for row in rows
    ]


def commits(
    repository: Repository,
    last: str,
    after: str | None = None,
    subdirs: Sequence[str] = (),
    lines: bool = True,
) -> Iterator[Commit]:
    """Yield the main line's commits up to ``last``, oldest first, with changes to first parents.

    Args:
        repository: the repository.
        last: hash of the last commit.
        after: hash of the commit before the first one; None starts at the first commit.
        subdirs: only these folders, if any.
        lines: whether to count lines (slower); else counts are 0.

    Raises:
        ValueError: git fails, for example because objects are missing.
    """
    command = [
        "log", "--first-parent", "-m", "--reverse", "-z", "--raw", "--no-abbrev", "-M",
        f"-l{RENAME_LIMIT}", "--no-relative", "--no-textconv", "--no-ext-diff", "--no-color",
        "--no-notes", "--encoding=UTF-8", f"--format=tformat:{HEADER}",
    ]  # fmt: skip
    command += ["--numstat"] if lines else []
    command += [last] + ([f"^{after}"] if after else []) + _pathspec(subdirs)
    with _process(repository.path, command) as process:
        assert process.stdout is not None
        yield from _parse(_split(process.stdout))


@contextmanager
def blob_reader(repository: Repository) -> Iterator[BlobReader]:
    """Yield a reader of blobs by hash."""
    with _process(repository.path, ["cat-file", "--batch"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield BlobReader(process.stdin, process.stdout)
        process.stdin.close()


class BlobReader:
    """Reader of blobs through one git process."""

    def __init__(self, requests: IO[bytes], responses: IO[bytes]) -> None:
        self._requests = requests
        self._responses = responses

    def read(self, blob: str, limit: int) -> bytes:
        """Return the first ``limit`` bytes of a blob.

        Raises:
            ValueError: the blob is missing.
        """
        self._requests.write(f"{blob}\n".encode())
        self._requests.flush()
        answer = self._responses.readline().split()
        if len(answer) != 3:
            raise ValueError(f"blob {blob} is missing; is the repository a partial clone?")
        left = int(answer[2])
        kept = self._responses.read(min(left, limit))
        left -= len(kept)
        while left:
            left -= len(self._responses.read(min(left, READ_BYTES)))
        self._responses.read(1)
        return kept


def _pathspec(subdirs: Sequence[str]) -> list[str]:
    """Return the arguments that restrict a command to folders."""
    return ["--", *(f":(top,literal){subdir.strip('/')}" for subdir in subdirs)]


def _author_times(repository: Repository, hashes: Sequence[str]) -> dict[str, int]:
    """Return the author times of the commits ``hashes``."""
    if not hashes:
        return {}
    command = ["log", "--no-walk=unsorted", "--stdin", "--format=%H %at"]
    lines = _output(repository.path, command, "\n".join(hashes)).splitlines()
    return {line.split()[0]: int(line.split()[1]) for line in lines}


def _command(path: Path, arguments: Sequence[str]) -> list[str]:
    return ["git", "-C", str(path), *FIXED, *arguments]


def _environment() -> dict[str, str]:
    """Return the environment variables for git: English messages, no prompts, no downloads."""
    return os.environ | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}


def _failure(path: Path, messages: str) -> ValueError:
    """Return the error for a failed git, with its message."""
    lines = [line for line in messages.strip().splitlines() if line]
    reason = next((line for line in lines if line.startswith("fatal:")), "git failed")
    return ValueError(f"{path}: {reason.removeprefix('fatal: ')}")


def _output(path: Path, arguments: Sequence[str], given: str = "") -> str:
    """Run git and return its output, or raise ValueError."""
    try:
        done = subprocess.run(
            _command(path, arguments),
            input=given.encode(),
            capture_output=True,
            env=_environment(),
            check=False,
        )
    except FileNotFoundError:
        raise ValueError("git is not installed, or not on the PATH") from None
    if done.returncode:
        raise _failure(path, done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "replace")


@contextmanager
def _process(
    path: Path, arguments: Sequence[str], stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a git process; raise ValueError if it fails, kill it if the block raises."""
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(
            _command(path, arguments),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=messages,
            env=_environment(),
        )
        with process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            messages.seek(0)
            raise _failure(path, messages.read().decode("utf-8", "replace"))


def _split(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield NUL-separated tokens."""
    rest = b""
    while block := stream.read(READ_BYTES):
        *whole, rest = (rest + block).split(b"\0")
        yield from whole
    if rest.strip():
        yield rest


def _path(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _parse(tokens: Iterator[bytes]) -> Iterator[Commit]:
    """Parse the NUL-separated output of ``git log --raw --numstat -z``."""
    commit: Commit | None = None
    place: dict[str | None, int] = {}
    for padded in tokens:
        token = padded.lstrip(b"\n")
        if token.startswith(b"\x1e"):
            if commit is not None:
                yield commit
            hash_, subject = token[1:].split(b"\x1f", 1)
            commit = Commit(hash_.decode(), subject.decode("utf-8", "replace"), [])
            place = {}
        elif token.startswith(b":") and commit is not None:
            touch = _touch(token, tokens)
            place[touch.new_path or touch.old_path] = len(commit.touches)
            commit.touches.append(touch)
        elif NUMSTAT.match(token) and commit is not None:
            path, added, removed = _line_counts(token, tokens)
            index = place[path]
            commit.touches[index] = commit.touches[index]._replace(
                lines_added=added, lines_removed=removed
            )
        elif token:
            raise ValueError(f"cannot read git's output at {token[:80]!r}")
    if commit is not None:
        yield commit


def _touch(token: bytes, tokens: Iterator[bytes]) -> Touch:
    """Parse an entry of ``--raw``: modes, blobs and status, then one or two paths."""
    old_mode, new_mode, old_blob, new_blob, status = token[1:].decode().split(" ")
    path = _path(next(tokens))
    old_path, new_path = path, path
    if status[0] in "RC":
        new_path = _path(next(tokens))
    return Touch(
        old_path if status[0] not in "AC" else None,
        new_path if status[0] != "D" else None,
        old_blob if old_mode.startswith("100") else None,
        new_blob if new_mode.startswith("100") else None,
        0,
        0,
    )


def _line_counts(token: bytes, tokens: Iterator[bytes]) -> tuple[str, int, int]:
    """Parse an entry of ``--numstat``: path, lines added and removed (0 for binary files)."""
    added, removed, path = token.split(b"\t", 2)
    if not path:
        next(tokens)
        path = next(tokens)
    if added == b"-":
        return _path(path), 0, 0
    return _path(path), int(added), int(removed)
