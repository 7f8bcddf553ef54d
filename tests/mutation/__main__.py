"""Put random faults into the formulas and the engine, and see whether the tests notice.

    python -m tests.mutation --count 200

A fault is one changed operator, comparison, number, condition or sign, in a copy of the checkout.
The tests of ``TESTS`` run until one fails. What no test notices is printed, and written to
``runs/survivors.csv``: such a fault changes no number, or a test is missing. A fault takes 10 to
300 seconds, as it compiles all kernels anew.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutation.mutants import Mutant, mutants_of, sample_of

ROOT = Path(__file__).parents[2]
VALUES, SOLVERS = ("tests/policies/values", "tests/policies/solvers"), ("tests/policies/solvers",)
ENGINE = (
    "tests/crawl_envs/sim",
    "tests/crawl_envs/worlds",
    "tests/crawl_envs/families",
    "tests/crawl_envs/test_evaluation.py",
    "tests/crawl_envs/test_same_events.py",
    "tests/crawl_envs/envs/test_single.py",
)
TESTS: Mapping[str, Sequence[str]] = {
    "policies/values": (*VALUES, "tests/policies/ncis", "tests/policies/longevity"),
    "policies/solvers": SOLVERS,
    "crawl_envs/sim": ENGINE,
    "crawl_envs/types/ledgers.py": ENGINE[1:],
    "crawl_envs/worlds/budgets.py": ENGINE[1:],
    "crawl_envs/spaces/rewards.py": (*ENGINE[1:], "tests/crawl_envs/envs"),
}
"""Files and folders that get faults, and the tests that must notice."""
LONGEST = 900.0
"""Seconds after which tests that do not end count as failed."""
KILLED, SURVIVED, ENDLESS = "killed", "survived", "endless"


def files_of(chosen: str) -> list[str]:
    """Return the files with faults whose names contain a word."""
    found: list[str] = []
    for place in TESTS:
        path = ROOT / place
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        found += [str(file.relative_to(ROOT)) for file in files if file.name != "__init__.py"]
    return [file for file in found if chosen in file]


def copy_checkout(folder: Path) -> None:
    """Copy the files that git knows, or would add, but not the results."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists() and not name.startswith(("results/", "docs/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def outcome_of(mutant: Mutant, folder: Path) -> str:
    """Run the tests on a copy of the checkout with a fault."""
    tests = next(tests for place, tests in TESTS.items() if mutant.file.startswith(place))
    path, text = folder / mutant.file, (ROOT / mutant.file).read_text("utf-8")
    path.write_text(mutant.applied(text), "utf-8")
    try:
        return outcome_in(folder, tests)
    finally:
        path.write_text(text, "utf-8")


def outcome_in(folder: Path, tests: Sequence[str]) -> str:
    """Run tests in a copy of the checkout, with an empty cache of kernels."""
    cache = tempfile.mkdtemp(prefix="kernels-")
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": cache}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        return ENDLESS
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    return KILLED if done.returncode else SURVIVED


def check_tests() -> None:
    """Raise RuntimeError if tests fail without a fault."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copy_checkout(Path(place))
        tests = sorted({test for tests in TESTS.values() for test in tests})
        if outcome_in(Path(place), tests) != SURVIVED:
            raise RuntimeError(f"without a fault, one of these fails: {' '.join(tests)}")


def tried(mutants: Sequence[Mutant], workers: int) -> Iterator[tuple[Mutant, str, float]]:
    """Yield every fault with its outcome and the seconds that it took."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(workers) as do:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copy_checkout(Path(place) / str(number))
            free.put(Path(place) / str(number))

        def run(mutant: Mutant) -> tuple[Mutant, str, float]:
            folder, start = free.get(), time.monotonic()
            try:
                return mutant, outcome_of(mutant, folder), time.monotonic() - start
            finally:
                free.put(folder)

        yield from do.map(run, mutants)


def main() -> None:
    """Try a sample of faults."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="number of faults")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--workers", type=int, default=2, help="faults tried at a time")
    parser.add_argument("--files", default="", help="part of the names of the files")
    parser.add_argument("--out", type=Path, default=ROOT / "runs/survivors.csv")
    given = parser.parse_args()
    files = files_of(given.files)
    whole = sum(len(mutants_of(ROOT, file)) for file in files)
    mutants = sample_of(ROOT, files, given.count, given.seed)
    print(f"{len(mutants)} of {whole} faults in {len(files)} files", flush=True)
    check_tests()
    survivors = []
    for number, (mutant, outcome, seconds) in enumerate(tried(mutants, given.workers), 1):
        at = f"{mutant.file}:{mutant.line}: {mutant.old} -> {mutant.new}"
        print(f"{number:5} {outcome:8} {seconds:5.0f} s  {at}", flush=True)
        survivors += [mutant] if outcome == SURVIVED else []
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "line", "old", "new", "code"])
        for file_name, line, _, old, new in sorted(survivors):
            code = (ROOT / file_name).read_text("utf-8").splitlines()[line - 1].strip()
            writer.writerow([file_name, line, old, new, code])
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} noticed -> {given.out}")


if __name__ == "__main__":
    main()
