"""Numbers that code independent of this suite has computed, in ``tests/golden/reference``.

``lambdacrawl`` has optima of the LambdaCrawl paper by 50-digit bisection, confirmed by duality;
``ncis_continuous`` optimal thresholds and rates of Theorem 1 of the NCIS paper, with duality gaps
below 1e-9; ``ncis_values`` crawl values by 90-digit arithmetic, confirmed by the renewal equations;
``ncis_events`` lists of events with the crawls of each policy; ``greedy_deterministic`` exact
accuracies without signals. Numbers of many digits are strings, as is "inf".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden" / "reference"


def reference(name: str) -> Any:
    """Return the numbers of a file."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
