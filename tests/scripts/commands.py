"""Running a command of the suite in tests, and what its errors look like."""

from __future__ import annotations

from typer.testing import CliRunner

SMALL = ["--env-arg", "num_pages=4", "--env-arg", "bandwidth=4", "--env-arg", "horizon=5"]


def run(app, *arguments, out):
    return CliRunner().invoke(app, [*map(str, arguments), "--out", str(out)])


def done(result):
    assert result.exit_code == 0, result.output + str(result.exception)
    return result


def refused(result, *words, code=2):
    assert result.exit_code == code, f"{result.output} {result.exception!r}"
    lines = [line for line in result.stderr.strip().splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    assert all(word in lines[0] for word in words), lines[0]
    assert "Traceback" not in result.output
