"""Write the golden files again: ``python -m tests.golden``."""

from __future__ import annotations

from tests.golden import write_all

if __name__ == "__main__":
    write_all()
