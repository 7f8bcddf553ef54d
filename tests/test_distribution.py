"""The wheel holds what it should, and works without the repository."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("crawl_envs", "policies", "agents", "scripts")
BUILT = ("pyproject.toml", "README.md", "LICENSE", *PACKAGES)
NEEDED = 77
"""Setuptools of pyproject.toml."""

SMOKE = """
import sys, gymnasium, crawl_envs, policies
assert crawl_envs.__file__.startswith(sys.argv[1]), crawl_envs.__file__
for name in ("CrawlNCIS-v0", "CrawlTrace-v0"):
    env = gymnasium.make(f"crawl_envs:{name}")
    observation, _ = env.reset(seed=0)
    page, _ = policies.make("GreedyNCIS", env).predict(observation)
    assert env.step(page)[1] >= 0.0
heavy = {"torch", "matplotlib", "rich", "typer"} & set(sys.modules)
assert not heavy, heavy
import agents
agents.load("noisy-index")
from scripts.__main__ import main
main(["--help"])
"""


def output_of(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if int(version("setuptools").partition(".")[0]) < NEEDED:
        pytest.skip(f"setuptools {NEEDED} is needed")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in BUILT:
        path = ROOT / name
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, source / name)
    for cache in source.rglob("__pycache__"):
        shutil.rmtree(cache)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    output_of([*build, "--no-index", "--wheel-dir", str(out), str(source)])
    return next(out.glob("*.whl"))


def test_it_holds_all_files_of_the_packages_and_no_others(wheel: Path) -> None:
    command = ["git", "ls-files", *PACKAGES]
    try:
        kept = set(output_of(command, cwd=ROOT).split())
    except (OSError, AssertionError):
        pytest.skip("no repository here")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held - kept == set()
    assert kept - held == set()


def test_it_works_from_its_files_alone(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    script = tmp_path / "smoke.py"
    script.write_text(SMOKE)
    environment = {"PYTHONPATH": str(place), "PATH": "", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    printed = output_of([sys.executable, str(script), str(place)], cwd=tmp_path, env=environment)
    assert "  benchmark " in printed
    entry = next(place.glob("*.dist-info")) / "entry_points.txt"
    assert "crawl-envs = crawl_envs.__main__:main" in entry.read_text()


def test_the_lowest_versions_that_were_tested_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(extras[name] for name in ("scripts", "agents", "tune"))]
    texts = [text for part in wanted for text in ([part] if isinstance(part, str) else part)]
    bounds = dict(re.findall(r"^([\w.-]+)>=([\d.]+)", text)[0] for text in texts if ">=" in text)
    lines = (ROOT / "tests" / "lowest.txt").read_text("utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert len(bounds) > 12
    for name, bound in bounds.items():
        if name != "torch":
            assert f"{tested[name]}.".startswith(f"{bound}."), name
