"""The site is built without a warning, and holds what it is made from."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import crawl_envs
import policies
from tests.docs.pages import ROOT

PACKAGES = ("sphinx", "furo", "myst_nb", "sphinx_copybutton")


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    for package in PACKAGES:
        pytest.importorskip(package)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    plain = ["-D", "html_theme=basic"]  # the navigation of furo takes as long as all the rest
    done = subprocess.run(
        [*command, *plain, "-d", str(tmp_path / "doctrees"), "docs", str(tmp_path / "html")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    html = tmp_path / "html"
    pages = {str(page.relative_to(html)): page.read_text("utf-8") for page in html.rglob("*.html")}
    for name in crawl_envs.FAMILIES:
        assert 'id="observation-space"' in pages[f"generated/environments/{name}.html"], name
    catalogue = pages["generated/policies.html"]
    for name in policies.names(fragments=True):
        assert f'id="{name.lower()}"' in catalogue, name
        assert f'<td><p><a class="reference internal" href="#{name.lower()}">' in catalogue, name
    for preset in crawl_envs.PRESETS:
        assert any(f">{preset}<" in page for page in pages.values()), preset
    assert "generated/results/ncis/claims.html" in pages
    for link in re.findall(r"\]\(([^)]+)\)", (html / "llms.txt").read_text("utf-8")):
        assert link in pages
    assert "generated/api/policies.solvers.html" in pages
