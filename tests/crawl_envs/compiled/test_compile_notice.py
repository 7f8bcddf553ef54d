"""The line about compilation comes once, on terminals, when a compilation takes long."""

from __future__ import annotations

import sys
import time

import pytest

from crawl_envs.compiled import compile_notice


@pytest.fixture
def notice(monkeypatch):
    monkeypatch.setattr(compile_notice, "PATIENCE", 0.05)
    return compile_notice.CompileNotice()


def compilation(notice, seconds):
    notice.on_start(None)
    notice.on_start(None)
    notice.on_end(None)
    time.sleep(seconds)
    notice.on_end(None)


@pytest.mark.parametrize(("terminal", "seconds", "times"), [(True, 0.3, 1), (False, 0.3, 0)])
def test_a_line_for_people(notice, monkeypatch, capsys, terminal, seconds, times):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    for _ in range(2):
        compilation(notice, seconds)
    assert capsys.readouterr().err == f"{compile_notice.LINE}\n" * times


def test_no_line_for_a_short_compilation(notice, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(compile_notice, "PATIENCE", 30.0)
    compilation(notice, 0.0)
    assert capsys.readouterr().err == ""
