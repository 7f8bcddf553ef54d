"""Running a command of the suite in tests, its errors and its files."""

from __future__ import annotations

import csv

from typer.testing import CliRunner

SMALL = ["--env-arg", "num_pages=4", "--env-arg", "bandwidth=4", "--env-arg", "horizon=5"]


def run(app, *arguments, out=None, **given):
    words = [*arguments, *(() if out is None else ("--out", out))]
    return CliRunner().invoke(app, [*map(str, words)], **given)


def done(result):
    assert result.exit_code == 0, result.output + str(result.exception)
    return result


def refused(result, *words, code=2):
    assert result.exit_code == code, f"{result.output} {result.exception!r}"
    lines = [line for line in result.stderr.strip().splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    assert all(word in lines[0] for word in words), lines[0]
    assert "Traceback" not in result.output


def files_in(folder):
    return {path.name for path in folder.iterdir()}


def records(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
