"""The faults of mutation testing."""

import ast
from pathlib import Path

from tests.mutation.__main__ import TESTS, files_of
from tests.mutation.mutants import mutants_of, sample_of

SOURCE = '''"""Docstring with 1 < 2."""
def f(x: int = 3) -> bool:
    if x <= 4 and not x == -5.0:
        raise ValueError(f"x must be > {6}")
    return min(x, 7) + 2
'''


def test_every_fault_is_one_change_that_parses(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(SOURCE)
    found = mutants_of(tmp_path, "f.py")
    assert [(mutant.line, mutant.old, mutant.new) for mutant in found] == [
        (2, "3", "(3 + 1)"),
        (3, "<=", "<"),
        (3, "4", "(4 + 1)"),
        (3, "and", "or"),
        (3, "==", "!="),
        (3, "-", "+"),
        (3, "5.0", "(5.0 + 1)"),
        (5, "min", "max"),
        (5, "7", "(7 + 1)"),
        (5, "+", "-"),
        (5, "2", "(2 + 1)"),
    ]
    texts = [mutant.applied(SOURCE) for mutant in found]
    assert len({*texts, SOURCE}) == len(found) + 1
    for text in texts:
        ast.parse(text)


def test_all_files_have_tests_and_samples_depend_on_the_seed() -> None:
    root = Path(__file__).parents[1]
    files = files_of("")
    assert len(files) > 40
    for tests in TESTS.values():
        for test in tests:
            assert (root / test).exists(), test
    one, two = (sample_of(root, files, 20, seed) for seed in (0, 1))
    assert one != two
    assert one == sample_of(root, files, 20, 0)
    for mutant in one:
        ast.parse(mutant.applied((root / mutant.file).read_text("utf-8")))
