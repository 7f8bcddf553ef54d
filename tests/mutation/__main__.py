"""Put random faults into the formulas and the engine, and see whether the tests notice.

    python -m tests.mutation --count 200

A fault is one changed operator, comparison, number, condition or sign, in a copy of the checkout.
The tests of ``TESTS`` run until one fails, those first that name functions of the file. What no
test notices is printed, and written to ``runs/survivors.csv``: such a fault changes no number, or
a test is missing. ``tests/mutation/harmless.csv`` lists faults that were looked at, and why they
change no number; they are not tried again.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import re
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
SOLVERS = ("tests/policies/solvers", "tests/policies/ncis/test_threshold.py")
VALUES = ("tests/policies/values", *SOLVERS)
ENGINE = (
    "tests/crawl_envs/sim",
    "tests/crawl_envs/worlds",
    "tests/crawl_envs/families",
    "tests/crawl_envs/test_evaluation.py",
    "tests/crawl_envs/test_same_events.py",
    "tests/crawl_envs/envs/test_single.py",
    "tests/policies/base/test_compiled_learner.py",
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
HARMLESS = Path(__file__).with_name("harmless.csv")
"""Faults that change no number: file, the faulty line, and the reason."""
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


def in_order(tests: Sequence[str], file: str) -> list[str]:
    """Return the files of tests, those first that name most functions and classes of a file."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = {node.name for node in tree.body if isinstance(node, kinds)} | {Path(file).stem}
    paths = {ROOT / test for test in tests if test.endswith(".py")}
    paths |= {path for test in tests for path in (ROOT / test).rglob("test_*.py")}

    def known_names(path: Path) -> int:
        return len(names & set(re.findall(r"\w+", path.read_text("utf-8"))))

    ordered = sorted(sorted(paths), key=known_names, reverse=True)
    return [str(path.relative_to(ROOT)) for path in ordered]


def outcome_of(mutant: Mutant, place: Path) -> str:
    """Run the tests on a copy of the checkout with a fault."""
    tests = next(tests for start, tests in TESTS.items() if mutant.file.startswith(start))
    path, text = place / "checkout" / mutant.file, (ROOT / mutant.file).read_text("utf-8")
    times = path.stat()
    path.write_text(mutant.applied(text), "utf-8")
    try:
        return outcome_in(place, in_order(tests, mutant.file))
    finally:
        path.write_text(text, "utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def outcome_in(place: Path, tests: Sequence[str]) -> str:
    """Run tests in a copy of the checkout, with a copy of its cache of kernels."""
    kept, cache = place / "kernels", place / "kernels of a fault"
    shutil.copytree(kept, cache, copy_function=os.link)  # Numba replaces files, never writes them
    try:
        return KILLED if run_tests(place / "checkout", cache, tests) else SURVIVED
    except subprocess.TimeoutExpired:
        return ENDLESS
    finally:
        shutil.rmtree(cache)


def run_tests(folder: Path, cache: Path, tests: Sequence[str]) -> int:
    """Return the exit status of pytest in a folder, with a cache of kernels."""
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider"]
    environment = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        timeout=LONGEST,
    ).returncode


def prepare(place: Path, tests: Sequence[str]) -> None:
    """Make a copy of the checkout and its cache of kernels.

    Raises:
        RuntimeError: tests fail without a fault.
    """
    copy_checkout(place / "checkout")
    (place / "kernels").mkdir()
    if run_tests(place / "checkout", place / "kernels", tests):
        raise RuntimeError(f"without a fault, one of these fails: {' '.join(tests)}")


def tried(mutants: Sequence[Mutant], workers: int) -> Iterator[tuple[Mutant, str, float]]:
    """Yield every fault with its outcome and the seconds that it took."""
    starts = {start for start in TESTS for mutant in mutants if mutant.file.startswith(start)}
    tests = sorted({test for start in starts for test in TESTS[start]})
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(workers) as do:
        places = [Path(place) / str(number) for number in range(workers)]
        list(do.map(lambda one: prepare(one, tests), places))
        free: SimpleQueue[Path] = SimpleQueue()
        for one in places:
            free.put(one)

        def run(mutant: Mutant) -> tuple[Mutant, str, float]:
            one, start = free.get(), time.monotonic()
            try:
                return mutant, outcome_of(mutant, one), time.monotonic() - start
            finally:
                free.put(one)

        yield from do.map(run, mutants)


def harmless_faults() -> set[tuple[str, str]]:
    """Return the files and faulty lines of the faults that change no number."""
    with HARMLESS.open(newline="", encoding="utf-8") as file:
        return {(row["file"], row["code"]) for row in csv.DictReader(file)}


def faulty_line(mutant: Mutant) -> str:
    """Return the line of a fault, with the fault."""
    text = mutant.applied((ROOT / mutant.file).read_text("utf-8"))
    return text.splitlines()[mutant.line - 1].strip()


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
    sample = sample_of(ROOT, files, given.count, given.seed)
    harmless = harmless_faults()
    mutants = [one for one in sample if (one.file, faulty_line(one)) not in harmless]
    known = len(sample) - len(mutants)
    print(f"{len(sample)} of {whole} faults in {len(files)} files, {known} harmless", flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    survivors = 0
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "line", "code"])
        for number, (mutant, outcome, seconds) in enumerate(tried(mutants, given.workers), 1):
            row = mutant.file, mutant.line, faulty_line(mutant)
            print(
                f"{number:5} {outcome:8} {seconds:5.0f} s  {row[0]}:{row[1]}: {row[2]}", flush=True
            )
            if outcome == SURVIVED:
                writer.writerow(row)
                survivors += 1
    print(f"{len(mutants) - survivors} of {len(mutants)} noticed -> {given.out}")


if __name__ == "__main__":
    main()
