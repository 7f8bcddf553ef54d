from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.__main__ import commands, main

ROOT = Path(__file__).resolve().parents[2]


def test_every_command_of_the_folder_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    listed = re.findall(r"^  (\w+) +(.+)$", capsys.readouterr().out, re.MULTILINE)
    assert [name for name, _ in listed] == [
        path.stem for path in sorted((ROOT / "scripts").glob("[a-z]*.py"))
    ]
    assert all(about.endswith((".", ",")) for _, about in listed)
    assert dict(listed) == commands()


def test_a_command_gets_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["benchmark", "--seeds", "0"])
    assert done.value.code == 2
    assert "seeds must be an integer >= 1, got 0" in capsys.readouterr().err


def test_policies_of_ones_own_lie_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import policies\nclass Own(policies.RoundRobin):\n    pass\n"
    )
    command = [Path(sys.executable).with_name("crawl-envs"), "benchmark", "--quick", "--seeds", "1"]
    given = ["--settings", "uniform", "--num-pages", "5", "--policies", "mine:Own", "--out", "made"]
    done = subprocess.run([*command, *given], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mine:Own" in (tmp_path / "made" / "summary.csv").read_text()


def test_an_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["benchmrk"])
    assert done.value.code == 2
    said = capsys.readouterr().err
    assert said == "error: command 'benchmrk' is unknown; did you mean benchmark?\n"
