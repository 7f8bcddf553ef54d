"""The main line of a git repository, as commits and the files they touch.

Only the git command line is used, read-only and without downloads. Data are streamed: one commit or
one blob at a time.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

RENAME_LIMIT = 1000
"""Number of added and removed files of a commit above which only exact renames are detected."""
READ_BYTES = 1 << 20
FIXED = (
    "-c", "core.quotePath=false", "-c", "log.showSignature=false", "-c", "log.showRoot=true",
    "-c", "log.follow=false",
)  # fmt: skip
QUIET = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
"""Variables of git: English messages, no prompts, no downloads."""
NUMSTAT = re.compile(rb"(\d+|-)\t(\d+|-)\t")
UNREADABLE = re.compile(r"unable to read (?:\S+ )?([0-9a-f]{40,64})")
HASH = re.compile(r"[0-9a-f]{40,64}")
PROMISOR = re.compile(r"^remote\..*\.promisor=true$", re.MULTILINE)


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
    """A git repository on disk, checked by ``open_repository``; ``specs`` selects its pages.

    In a ``partial`` clone blobs may be missing: renames are then found by equal content alone, and
    lines are not counted.
    """

    path: Path
    head: str
    partial: bool
    specs: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.resolve().name.removesuffix(".git")

    def commits(self, last: str, after: str | None = None, lines: bool = True) -> Iterator[Commit]:
        """Yield the main line's commits up to ``last``, oldest first, against first parents.

        Args:
            last: hash of the last commit.
            after: hash of the commit before the first one; None starts at the first commit.
            lines: whether to count lines (slower); else counts are 0.

        Raises:
            ValueError: git fails, for example because objects are missing.
        """
        command = [
            "log", "--first-parent", "-m", "--reverse", "-z", "--raw", "--no-abbrev",
            "-M100%" if self.partial else "-M", f"-l{RENAME_LIMIT}", "--no-relative",
            "--no-textconv", "--no-ext-diff", "--no-color", "--no-notes", "--encoding=UTF-8",
            "--format=tformat:%x1e%H%x1f%s",
        ]  # fmt: skip
        command += ["--numstat"] if lines and not self.partial else []
        command += [last, *([f"^{after}"] if after else []), "--", *self.specs]
        try:
            with _process(self.path, command) as process:
                yield from _parse(_split(_pipe(process.stdout)))
        except ValueError as error:
            if unreadable := UNREADABLE.search(str(error)):
                raise self.missing(unreadable[1]) from None
            raise

    def missing(self, blob: str) -> ValueError:
        """Return the error for a blob that the repository lacks, with its path and commit."""
        command = ["log", "--first-parent", "-m", "--no-renames", f"--find-object={blob}"]
        command += ["-z", "--name-only", "--format=%x1e%h", self.head]
        first = _output(self.path, command).split("\x1e")[-1]
        commit, name, *_ = [part.strip("\n") for part in first.split("\0")] + ["?", "?"]
        return ValueError(
            f"{self.path}: the content of {name!r} in commit {commit}, blob {blob}, is missing; "
            f"leave the file out with --exclude {name!r}, or declare a partial clone, "
            "git config remote.origin.promisor true: missing versions are then counted"
        )


def open_repository(
    path: Path,
    subdirs: Sequence[str] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    branch: str = "HEAD",
) -> Repository:
    """Open the repository with the top folder (or bare folder) ``path``.

    Args:
        path: the folder.
        subdirs: only files in one of these folders, if any.
        include: only files whose path in the folder matches one of these patterns, if any; ``*``
            matches slashes as well.
        exclude: no files whose path in the repository matches one of these patterns.
        branch: the branch, tag or commit whose main line is read.

    Raises:
        ValueError: git is not installed, ``path`` is no repository or a subfolder of one, it is a
            shallow clone, or there is no commit or no such branch.
    """
    if not path.is_dir():
        raise ValueError(f"repository must be a folder, got {str(path)!r}")
    prefix, shallow = _output(
        path, ["rev-parse", "--show-prefix", "--is-shallow-repository"]
    ).splitlines()
    if prefix:
        raise ValueError(
            f"{path} is inside a repository; use its top folder and --subdir {prefix!r}"
        )
    if shallow == "true":
        raise ValueError(
            f"{path}: a shallow clone lacks the history; complete it by git fetch --unshallow"
        )
    verify = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{branch}^{{commit}}"]
    try:
        head = _output(path, verify).strip()
    except ValueError:
        head = ""
    if not HASH.fullmatch(head):  # "^main" excludes a commit, and is none
        names = branches(path)
        if branch == "HEAD" and not names:
            raise ValueError(f"{path}: the repository has no commits")
        raise ValueError(
            f"{path}: there is no commit {branch!r}; branches are {', '.join(names) or 'none'}"
        )
    folders = [re.sub(r"([\\*?\[])", r"\\\1", subdir.strip("/")) for subdir in subdirs]
    specs = [f":(top,literal){subdir.strip('/')}" for subdir in subdirs]
    if include:
        within = [f"{folder}/" for folder in folders] or [""]
        specs = [f":(top){folder}{pattern}" for folder in within for pattern in include]
    specs += [f":(top,exclude){pattern}" for pattern in exclude]
    partial = PROMISOR.search(_output(path, ["config", "--list"])) is not None
    return Repository(path, head, partial, tuple(specs))


def branches(path: Path) -> list[str]:
    """Return the names of branches, local and remote, the latest commit first."""
    name = "%(if)%(symref)%(then)%(else)%(refname:short)%(end)"
    command = ["for-each-ref", "--sort=-committerdate", f"--format={name}", "refs/heads"]
    return _output(path, [*command, "refs/remotes"]).split()


def num_files(path: Path, commit: str) -> int:
    """Return the number of files of a commit."""
    command = ["ls-tree", "-r", "-z", "--name-only", "--end-of-options", commit]
    return _output(path, command).count("\0")


def main_line(repository: Repository) -> list[Link]:
    """Return the commits of the first-parent chain of the head that touch pages, oldest first."""
    path, head = repository.path, repository.head
    command = ["log", "--first-parent", "--reverse", "--format=%H %ct %at %P", head, "--"]
    rows = [line.split() for line in _output(path, [*command, *repository.specs]).splitlines()]
    tips = [row[4] for row in rows if len(row) > 4]
    authored = {}
    if tips:
        command = ["log", "--no-walk=unsorted", "--stdin", "--format=%H %at"]
        authored = dict(
            line.split() for line in _output(path, command, "\n".join(tips)).splitlines()
        )
    return [
        Link(row[0], int(row[1]), int(authored[row[4]] if row[4:] else row[2]), len(row) > 4)
        for row in rows
    ]


@contextmanager
def blob_reader(repository: Repository) -> Iterator[Callable[[str, int], bytes | None]]:
    """Yield a function that returns the first bytes of a blob, given its hash and a limit.

    It returns None for a blob that a partial clone lacks; in others it raises ValueError.
    """
    command, present = ["cat-file", "--batch"], None
    if repository.partial:  # asking git for a missing blob would download it
        local = [*command[:1], "--batch-all-objects", "--unordered", "--batch-check=%(objectname)"]
        present = set(_output(repository.path, local).split())
    with _process(repository.path, command, stdin=subprocess.PIPE) as process:
        requests, responses = _pipe(process.stdin), _pipe(process.stdout)

        def read(blob: str, limit: int) -> bytes | None:
            if present is not None and blob not in present:
                return None
            requests.write(f"{blob}\n".encode())
            requests.flush()
            answer = responses.readline().split()
            if len(answer) != 3:
                raise repository.missing(blob)
            left = int(answer[2])
            kept = responses.read(min(left, limit))
            left -= len(kept)
            while left:
                left -= len(responses.read(min(left, READ_BYTES)))
            responses.read(1)
            return kept

        yield read
        requests.close()


def _command(path: Path, arguments: Sequence[str]) -> list[str]:
    return ["git", "-C", str(path), *FIXED, *arguments]


def _failure(path: Path, messages: bytes) -> ValueError:
    """Return the error for a failed git, with its message."""
    lines = messages.decode("utf-8", "replace").splitlines()
    reason = next((line for line in lines if line.startswith("fatal:")), "git failed")
    return ValueError(f"{path}: {reason.removeprefix('fatal: ')}")


def _output(path: Path, arguments: Sequence[str], given: str = "") -> str:
    """Run git and return its output, or raise ValueError."""
    command, variables = _command(path, arguments), os.environ | QUIET
    try:
        done = subprocess.run(command, input=given.encode(), capture_output=True, env=variables)
    except FileNotFoundError:
        raise ValueError("git is not installed, or not on the PATH") from None
    if done.returncode:
        raise _failure(path, done.stderr)
    return done.stdout.decode("utf-8", "replace")


@contextmanager
def _process(
    path: Path, arguments: Sequence[str], stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a git process; raise ValueError if it fails, kill it if the block raises."""
    with tempfile.TemporaryFile() as messages:
        pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": messages}
        with subprocess.Popen(
            _command(path, arguments), env=os.environ | QUIET, **pipes
        ) as process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            messages.seek(0)
            raise _failure(path, messages.read())


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


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
            name, subject = token[1:].split(b"\x1f", 1)
            commit, place = Commit(name.decode(), subject.decode("utf-8", "replace"), []), {}
        elif token.startswith(b":") and commit is not None:
            touch = _touch(token, tokens)
            place[touch.new_path or touch.old_path] = len(commit.touches)
            commit.touches.append(touch)
        elif NUMSTAT.match(token) and commit is not None:
            added, removed, path = token.split(b"\t", 2)
            if not path:  # a rename: the old path, then the new one
                path = [next(tokens), next(tokens)][1]
            index = place[_path(path)]
            if added != b"-":  # of a binary file
                lines = {"lines_added": int(added), "lines_removed": int(removed)}
                commit.touches[index] = commit.touches[index]._replace(**lines)
        elif token:
            raise ValueError(f"cannot read git's output at {token[:80]!r}")
    if commit is not None:
        yield commit


def _touch(token: bytes, tokens: Iterator[bytes]) -> Touch:
    """Parse an entry of ``--raw``: modes, blobs and status, then one or two paths."""
    old_mode, new_mode, old_blob, new_blob, status = token[1:].decode().split(" ")
    old_path = _path(next(tokens))
    new_path = _path(next(tokens)) if status[0] in "RC" else old_path
    return Touch(
        old_path if status[0] not in "AC" else None,
        new_path if status[0] != "D" else None,
        old_blob if old_mode.startswith("100") else None,
        new_blob if new_mode.startswith("100") else None,
        0,
        0,
    )
