"""Pages made from docstrings, from the registry of policies and from Markdown files elsewhere."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
from importlib import import_module

import scores
from links import DOCS, ENVIRONMENTS, MIRRORED, ROOT, rewritten

import crawl_envs
from policies.base.registry import KINDS, PAPERS, POLICIES, TAGS

FOLDER = DOCS / "generated"
PACKAGES = ("crawl_envs", "policies", "agents")
SOURCE = re.compile(
    r"(?:Theorem|Proposition|Algorithm|Table|eq\.|sections?|appendix) [\dA-Z][\d.]*(?<!\.)"
    r"(?: and [\d.]+(?<!\.))?",
    re.IGNORECASE,
)
ABOUT = """`policies.make(name, env)` makes a policy by name.

- *compiled*: it has a compiled form. *learns*: it learns from the results of its crawls.
  *oracle*: it reads the true events.
- A policy acts in every environment that has one of its forms of action. Policies for *fragments*
  act in `CrawlLongevity-v0`, policies for *offers* in `CrawlOffers-v1`.
- *best in*: tasks of [crawl-v2](results/crawl-v2/README.md), by track, where no other policy scores
  more than .01 higher; 2/12 is two of twelve tasks.
- The source is a paper, with the section or equation. Rules of crawlers, baselines and policies of
  this suite have none."""

SCORES = """## Scores

These are the three best entrants in each task of [crawl-v2](../results/crawl-v2/README.md) with
this environment. 0 is random crawling, and ± a standard error over seeds. On recorded sites 0 is
round robin; brackets are a 95% interval over sites and trainings."""


def write() -> None:
    """Write all pages, and remove those of earlier builds."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    pages = {name: mirrored(name) for name in MIRRORED}
    pages |= {f"environments/{name}.md": environment(name) for name in ENVIRONMENTS}
    pages |= {"policies.md": catalogue(), "api/index.rst": reference(), "llms.txt": overview()}
    for name, text in pages.items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def mirrored(name: str) -> str:
    """Return the page of a Markdown file; the page of a paper lists its claims as a subpage."""
    text = rewritten((ROOT / name).read_text("utf-8"), name, f"generated/{name}")
    has_claims = (ROOT / name).with_name("claims.md").exists() and name.endswith("README.md")
    return text + "\n```{toctree}\n:hidden:\n\nclaims\n```\n" * has_claims


def overview() -> str:
    """Return the overview for language models, llms.txt, with links to the pages of the site."""
    text = rewritten((DOCS / "llms.txt").read_text("utf-8"), "docs/llms.txt", "llms.txt")
    return text.replace(".md)", ".html)")


def environment(name: str) -> str:
    """Return the page of an environment: the docstring of its class, and its presets."""
    module, _, attribute = crawl_envs.FAMILIES[name].partition(":")
    family = getattr(import_module(module), attribute)
    presets = [
        f"| `{preset}` | {', '.join(f'`{key}={value!r}`' for key, value in arguments.items())} "
        f"| {scores.gain(preset)} |"
        for preset, (of, arguments) in crawl_envs.PRESETS.items()
        if of == name
    ]
    heads = "| id | arguments | reward per step: random crawling, best formula |"
    table = "\n".join([heads, "|---|---|---|", *presets])
    code = f'```python\ngymnasium.make("crawl_envs:{name}")\n```'
    film = f"![Two policies on the same events](../../films/{name}.gif)"
    page = [f"# {name}", code, film, markdown(inspect.getdoc(family)), SCORES]
    page += [scores.of_environment(name), f"## Presets\n\n{table}\n"]
    return "\n\n".join(page)


def catalogue() -> str:
    """Return the page of policies: a table for each kind, then the docstring of each policy."""
    columns = ("policy", "forms of action", "what it does, and its source", "best in")
    heads = f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|"
    text = ["# Catalogue of policies\n", f"{ABOUT}\n"]
    for kind, what in KINDS.items():
        rows = [_row(name) for name, tags in TAGS.items() if tags.kind == kind]
        text += [f"## {kind.capitalize()}\n", f"{what[0].upper()}{what[1:]}.\n", heads, *rows, ""]
    for name in sorted(POLICIES):
        text += [f"## {name}\n", "```{eval-rst}", f".. autoclass:: policies.{name}"]
        text += ["   :no-index:", "```\n"]
    return "\n".join(text)


def _row(name: str) -> str:
    tags, docstring = TAGS[name], inspect.getdoc(POLICIES[name]) or ""
    words = " ".join(docstring.partition("\n\n")[0].split())
    marks = [word for word in ("compiled", "learns", "oracle") if getattr(tags, word)]
    acts = ", ".join(f"`{form}`" for form in tags.acts) or "none"
    acts += "" if tags.family == "pages" else f" (*{tags.family}*)"
    module = import_module(POLICIES[name].__module__).__doc__ or ""
    stated = SOURCE.search(docstring) or SOURCE.search(module)
    source = ""
    if tags.paper:
        authors, section = PAPERS[tags.paper]
        place = f", {stated[0]}" if stated else ""
        source = f" [{tags.paper} ({authors})](../papers.md#{section}){place}."
    what = f"{markdown(words)} {' '.join(f'*{mark}*' for mark in marks)}{source}"
    best = scores.wins(name)
    return f"| [{name}](#{name.lower()}) | {acts} | {what} | {best} |"


def reference() -> str:
    """Return the index of the public modules of each folder."""
    text = ["API reference", "=============", ""]
    for package in PACKAGES:
        modules = "\n   ".join(public_modules(package))
        text += [package, "-" * len(package), ""]
        text += [f".. autosummary::\n   :toctree:\n   :template: module.rst\n\n   {modules}\n"]
    return "\n".join(text)


def public_modules(package: str) -> list[str]:
    """Return a package, its subpackages, and the modules that their docstrings list as public."""
    modules = []
    for file in sorted((ROOT / package).rglob("__init__.py")):
        folder = ".".join(file.parent.relative_to(ROOT).parts)
        docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
        listed = re.search(r"Public modules?: ([\w, \n]+)\.", docstring)
        modules += [folder] if docstring else []
        modules += [f"{folder}.{name}" for name in re.split(r",\s+", listed[1])] if listed else []
    return modules


def markdown(text: str) -> str:
    """Return a docstring with its roles in Markdown's form."""
    return re.sub(r":(mod|func|class|data|meth|attr|exc):`([^`]+)`", r"{py:\1}`\2`", text)
