"""Somebody else's packages of the same names are told from the suite's in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crawl_envs.system.own_packages import MARK, ForeignPackage, check_own

ROOT = Path(__file__).parents[3]
FOREIGN = '"""Agents of somebody else."""\n\nRunner = object\n'


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, whose packages come first."""
    command = [sys.executable, *arguments]
    path = {"PYTHONPATH": f"{folder}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with another package ``agents``."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text(FOREIGN)
    return tmp_path


@pytest.mark.parametrize("name", ["policies", "agents", "scripts"])
def test_the_packages_of_the_suite_are_marked(name: str) -> None:
    assert MARK in (ROOT / name / "__init__.py").read_text("utf-8")
    check_own(name)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "scripts.datasets", "--help"),
        ("-m", "crawl_envs", "datasets", "--help"),
        ("-c", "import scripts"),
    ],
)
def test_commands_say_so_in_one_line(foreign: Path, arguments: tuple[str, ...]) -> None:
    done = python(foreign, *arguments)
    place = foreign / "agents" / "__init__.py"
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: the package 'agents' in {place} belongs to another distribution: install "
        "crawl-envs into a separate virtual environment"
    ]


def test_modules_under_a_mixed_folder_say_so(foreign: Path) -> None:
    """As pip leaves it: both in one folder, with the other's first file."""
    shutil.copytree(ROOT / "agents" / "cloning", foreign / "agents" / "cloning")
    done = python(foreign, "-c", "import agents.cloning")
    *_, last = done.stderr.splitlines()
    assert last.startswith("crawl_envs.system.own_packages.ForeignPackage: the package 'agents' in")


def test_a_folder_without_a_module_and_a_missing_one_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "somebody").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        with pytest.raises(ForeignPackage, match=f"'somebody' in {tmp_path}/somebody belongs"):
            check_own("somebody")
    with pytest.raises(ForeignPackage, match="'no_such_package' of crawl-envs is not installed"):
        check_own("no_such_package")


def test_the_command_runs_where_all_is_ours(tmp_path: Path) -> None:
    done = python(tmp_path, "-m", "crawl_envs", "--help")
    assert done.stdout.startswith("usage: crawl-envs COMMAND")
