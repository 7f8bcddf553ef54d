"""Read the main line of a git repository: its commits and the files they touch.

It runs the git command line, read-only and without downloads. One commit or one blob is in memory
at a time.
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
"""Largest number of added and removed files of a commit for which inexact renames are found."""
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
"""Environment variables of git: English messages, no prompts, no downloads."""
NUMSTAT = re.compile(rb"(\d+|-)\t(\d+|-)\t")
HASH = re.compile(r"[0-9a-f]{40,64}")


class Link(NamedTuple):
    """Hash and times of a commit of the main line; times are seconds since 1970.

    ``authored`` is the author's time; for a merge it is the author's time of the merged tip.
    """

    hash: str
    committed: int
    authored: int
    is_merge: bool


class Touch(NamedTuple):
    """A file that a commit touches: its path and blob before and after, or None.

    Links and submodules have a path and no blob.
    """

    old_path: str | None
    new_path: str | None
    old_blob: str | None
    new_blob: str | None
    lines_added: int = 0
    lines_removed: int = 0


class Commit(NamedTuple):
    """A commit: hash, first line of the message, and touched files."""

    hash: str
    subject: str
    touches: list[Touch]


@dataclass(frozen=True)
class Repository:
    """A git repository on disk, from ``open_repository``; ``specs`` selects the files."""

    path: Path
    head: str
    specs: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the repository's folder, without ``.git``."""
        return self.path.resolve().name.removesuffix(".git")

    def commits(
        self, last: str, after: str | None = None, *, lines: bool = True, contents: bool = True
    ) -> Iterator[Commit]:
        """Yield the commits of the main line up to ``last``, oldest first.

        Touched files are differences to a commit's first parent.

        Args:
            last: hash of the last commit.
            after: hash of the commit before the first one; None starts at the first commit.
            lines: whether to count lines (slower); False leaves the counts at 0.
            contents: whether to read contents; without them only renames with equal content are
                detected, and lines are not counted.

        Raises:
            ValueError: git fails.
        """
        command = [
            "log", "--first-parent", "-m", "--reverse", "-z", "--raw", "--no-abbrev",
            "-M" if contents else "-M100%", f"-l{RENAME_LIMIT}", "--no-relative",
            "--no-textconv", "--no-ext-diff", "--no-color", "--no-notes", "--encoding=UTF-8",
            "--format=tformat:%x1e%H%x1f%s",
        ]  # fmt: skip
        command += ["--numstat"] if lines and contents else []
        command += [last, *([f"^{after}"] if after else []), "--", *self.specs]
        with _git(self.path, command) as (_, output):
            yield from _parse(_split(output))

    def blobs(self) -> set[str]:
        """Return the hashes of all objects that are present; nothing is downloaded."""
        command = ["cat-file", "--batch-all-objects", "--unordered"]
        return set(git_output(self.path, [*command, "--batch-check=%(objectname)"]).split())


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
        ValueError: git is not installed, ``path`` is not the top folder of a repository or is a
            shallow clone, or there is no commit or no such branch.
    """
    if not path.is_dir():
        raise ValueError(f"repository must be a folder, got {str(path)!r}")
    command = ["rev-parse", "--show-prefix", "--is-shallow-repository"]
    prefix, shallow = git_output(path, command).splitlines()
    if prefix:
        raise ValueError(
            f"{path} is inside a repository; use its top folder and --subdir {prefix!r}"
        )
    if shallow == "true":
        raise ValueError(
            f"{path} must not be a shallow clone; complete it with git fetch --unshallow"
        )
    specs = _path_specs([subdir.strip("/") for subdir in subdirs], include, exclude)
    return Repository(path, _head(path, branch), specs)


def _head(path: Path, branch: str) -> str:
    """Return the hash of the latest commit of a branch, tag or commit name."""
    verify = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{branch}^{{commit}}"]
    try:
        head = git_output(path, verify).strip()
    except ValueError:
        head = ""
    if HASH.fullmatch(head):  # "^main" excludes a commit, and is none
        return head
    names = branches(path)
    if branch == "HEAD" and not names:
        raise ValueError(f"{path} must have commits, got none")
    raise ValueError(f"branch must be one of {', '.join(names) or 'none'}, got {branch!r}")


def _path_specs(
    subdirs: Sequence[str], include: Sequence[str], exclude: Sequence[str]
) -> tuple[str, ...]:
    """Return git's pathspecs for the file filters of :func:`open_repository`."""
    specs = [f":(top,literal){subdir}" for subdir in subdirs]
    if include:
        folders = [re.sub(r"([\\*?\[])", r"\\\1", f"{subdir}/") for subdir in subdirs] or [""]
        specs = [f":(top){folder}{pattern}" for folder in folders for pattern in include]
    return (*specs, *(f":(top,exclude){pattern}" for pattern in exclude))


def branches(path: Path) -> list[str]:
    """Return the names of branches, local and remote, the latest commit first."""
    name = "%(if)%(symref)%(then)%(else)%(refname:short)%(end)"
    command = ["for-each-ref", "--sort=-committerdate", f"--format={name}", "refs/heads"]
    return git_output(path, [*command, "refs/remotes"]).split()


def num_files(path: Path, commit: str) -> int:
    """Return the number of files in the tree of a commit."""
    command = ["ls-tree", "-r", "-z", "--name-only", "--end-of-options", commit]
    return git_output(path, command).count("\0")


def main_line(repository: Repository) -> list[Link]:
    """Return the commits of the main line (first parents) that touch pages, oldest first."""
    path, head = repository.path, repository.head
    lines = git_output(path, ["log", "--format=%H %at", head]).splitlines()
    authored = {name: int(second) for name, second in map(str.split, lines)}
    command = ["log", "--first-parent", "--reverse", "--format=%H %ct %P", head, "--"]
    links = []
    for line in git_output(path, [*command, *repository.specs]).splitlines():
        commit, committed, *parents = line.split()
        tip = parents[1] if len(parents) > 1 else commit
        links.append(Link(commit, int(committed), authored[tip], len(parents) > 1))
    return links


@contextmanager
def blob_reader(repository: Repository) -> Iterator[Callable[[str, int], bytes]]:
    """Yield a function that returns the first bytes of a present blob, given hash and limit."""
    with _git(repository.path, ["cat-file", "--batch"]) as (requests, responses):

        def read(blob: str, limit: int) -> bytes:
            requests.write(f"{blob}\n".encode())
            requests.flush()
            answer = responses.readline().split()
            if len(answer) != 3:
                raise ValueError(f"{repository.path}: blob {blob} is missing")
            size = int(answer[2])
            content = responses.read(min(size, limit))
            for skipped in range(len(content), size, READ_BYTES):
                responses.read(min(size - skipped, READ_BYTES))
            responses.read(1)
            return content

        yield read


def git_output(path: Path, arguments: Sequence[str], stdin: bytes = b"") -> str:
    """Run git in the folder ``path`` and return its output; raise ValueError if it fails."""
    with _git(path, arguments) as (requests, output):
        requests.write(stdin)
        requests.close()
        return output.read().decode("utf-8", "replace")


@contextmanager
def _git(path: Path, arguments: Sequence[str]) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Run git in a folder; yield its input and output pipes, and kill it if the block raises.

    If git fails, a ValueError has the first line of git's fatal error.
    """
    command = ["git", "-C", str(path), *FIXED, *arguments]
    pipe, variables = subprocess.PIPE, os.environ | QUIET
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=errors, env=variables
            )
        except FileNotFoundError:
            raise ValueError("git is not installed, or not on the PATH") from None
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                yield process.stdin, process.stdout
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            lines = errors.read().decode("utf-8", "replace").splitlines()
            fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal:")]
            raise ValueError(f"{path}: {[*fatal, 'git failed'][0]}")


def _split(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the NUL-separated tokens of a stream."""
    rest = b""
    while block := stream.read(READ_BYTES):
        *tokens, rest = (rest + block).split(b"\0")
        yield from tokens
    if rest.strip():
        yield rest


def _path(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _parse(tokens: Iterator[bytes]) -> Iterator[Commit]:
    """Yield commits from the NUL-separated tokens of ``git log --raw --numstat -z``."""
    commit: Commit | None = None
    row_of: dict[str | None, int] = {}
    for token in (token.lstrip(b"\n") for token in tokens):
        if token.startswith(b"\x1e"):
            if commit is not None:
                yield commit
            name, subject = token[1:].split(b"\x1f", 1)
            commit, row_of = Commit(name.decode(), subject.decode("utf-8", "replace"), []), {}
        elif token.startswith(b":") and commit is not None:
            touch = _touch(token, tokens)
            row_of[touch.new_path or touch.old_path] = len(commit.touches)
            commit.touches.append(touch)
        elif NUMSTAT.match(token) and commit is not None:
            added, removed, path = token.split(b"\t", 2)
            if not path:  # a rename: the old path, then the new one
                path = [next(tokens), next(tokens)][1]
            if added != b"-":  # of a binary file
                row, lines = row_of[_path(path)], (int(added), int(removed))
                commit.touches[row] = Touch(*commit.touches[row][:4], *lines)
        elif token:
            raise ValueError(f"cannot read git's output at {token[:80]!r}")
    if commit is not None:
        yield commit


def _touch(token: bytes, tokens: Iterator[bytes]) -> Touch:
    """Parse a touched file in ``git log --raw``: modes, blobs, status; then one or two paths."""
    old_mode, new_mode, old_blob, new_blob, status = token[1:].decode().split(" ")
    old_path = _path(next(tokens))
    new_path = _path(next(tokens)) if status[0] in "RC" else old_path
    return Touch(
        old_path if status[0] not in "AC" else None,
        new_path if status[0] != "D" else None,
        old_blob if old_mode.startswith("100") else None,
        new_blob if new_mode.startswith("100") else None,
    )
