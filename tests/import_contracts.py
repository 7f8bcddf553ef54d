"""A contract for import-linter: a folder's docstring names the modules that others may import."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from importlinter import Contract, ContractCheck, output


def public_modules(folder: str) -> set[str]:
    """Return the modules after "Public modules:" in the docstring of a package."""
    source = Path(folder.replace(".", "/"), "__init__.py").read_text()
    docstring = ast.get_docstring(ast.parse(source)) or ""
    listed = re.search(r"Public modules?: ([\w, \n]+)\.", docstring)
    return set(re.split(r",\s+", listed[1].replace("\n", " "))) if listed else set()


class PublicModules(Contract):
    """Modules that their folder does not list as public are imported from within it only.

    The folder itself, that is what its ``__init__`` holds, and its subfolders are always public;
    the modules directly under a root package are too.
    """

    type_name = "public_modules"

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Check that listed modules exist and no other is imported from outside its folder."""
        packages = {name.rpartition(".")[0] for name in graph.modules} - {""}
        problems = []
        for folder in sorted(name for name in packages if "." in name):
            public = public_modules(folder)
            children = graph.find_children(folder)
            problems += [
                f"{folder} lists {name}, which does not exist"
                for name in sorted(public - {child.rpartition(".")[2] for child in children})
            ]
            for child in sorted(children - packages):
                if child.rpartition(".")[2] in public:
                    continue
                problems += [
                    f"{importer} imports {child}, which is not public"
                    for importer in sorted(graph.find_modules_that_directly_import(child))
                    if not f"{importer}.".startswith(f"{folder}.")
                ]
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per problem."""
        for problem in check.metadata["problems"]:
            output.print_error(problem)
