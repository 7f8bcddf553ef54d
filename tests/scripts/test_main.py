from __future__ import annotations

import re
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
    assert "--seeds must be >= 1, got 0" in capsys.readouterr().err


def test_an_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["benchmrk"])
    assert done.value.code == 2
    said = capsys.readouterr().err
    assert said == "error: command 'benchmrk' is unknown; did you mean benchmark?\n"
