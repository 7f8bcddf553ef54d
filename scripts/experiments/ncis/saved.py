"""Busa-Fekete et al., appendix F: share of crawls that signals save at equal freshness."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import policies
from crawl_envs.evaluation import Row, simulate
from crawl_envs.instances.synthetic import FALSE_SIGNAL_RANGE, RECALL_BETA
from crawl_envs.types import FloatArray, Instance
from scripts.present import charts
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.means import means, table
from scripts.study.specs import spec

TITLE = "Crawls that signals save (NCIS paper, appendix F)"
METRIC = "saved"
PARAMETERS = ("importance", "change_rate", "recall", "false_signal_rate")
PRECISIONS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.95)
RECALLS = (0.2, 0.4, 0.6, 0.8, 0.95)
SIZES, GRID_SIZES = (100, 300, 1000), (100, 300)
"""Pages at bandwidth 100: crawls per change are 2, 2/3 and 1/5 on average."""
BANDWIDTH = 100.0
BANDWIDTH_TOLERANCE = 1e-3
"""Tolerance of the bandwidth, as a share of GREEDY's."""
GRID, DRAWN = "precision {:g}, recall {:g}", "Beta(1/4, 1/4), U(0.1, 0.6)"
SOURCE = "appendix F"
EVERYWHERE = tuple(f"m={size}" for size in SIZES)
GRIDS = tuple(f"m={size}" for size in GRID_SIZES)

CLAIMS = (
    Claim(
        "Signals save crawls at no loss of freshness; how many depends on how noisy they are.",
        SOURCE,
        (
            Range(DRAWN, 0.0, 1.0, EVERYWHERE, SOURCE),
            *(
                Range(GRID.format(precision, recall), 0.0, 1.0, GRIDS, SOURCE)
                for precision in (0.1, 0.95)
                for recall in (0.2, 0.95)
            ),
            *(
                Trend(GRID.format(0.95, recall), "above", GRID.format(0.1, recall), GRIDS, SOURCE)
                for recall in (0.2, 0.95)
            ),
        ),
        note="Freshness is held equal. The four corners of the grid of precision and recall stand "
        "for the rest of it.",
    ),
    Claim(
        "On the hosts with signals 10 to 20% of the crawls are saved, depending on how noisy the "
        "signals are.",
        SOURCE,
        (
            Range(GRID.format(0.2, 0.4), 0.1, 0.2, EVERYWHERE, "section 2 and appendix F"),
            Range(DRAWN, 0.1, 0.2, EVERYWHERE, SOURCE),
        ),
        note="The paper's pages and their bandwidth are not public, so that its numbers need not "
        "be reproduced. It reports precision below 0.2 and recall below 0.5 on pages declared to "
        "have perfect signals (section 2). The picture frames the precision and recall at which "
        "10 to 20% are saved.",
    ),
)


def pages(seed: int, num_pages: int, precision: float | None, recall: float | None) -> Instance:
    """Draw pages whose signals have this precision and recall; None draws the pages of figure 6.

    The rate of false signals is nu = lambda Delta (1 - precision) / precision.
    """
    rng = np.random.default_rng(seed)
    importance, change_rate = rng.random(num_pages), rng.random(num_pages)
    if precision is None or recall is None:
        page_recall: FloatArray | float = rng.beta(*RECALL_BETA, num_pages)
        false_rate = rng.uniform(*FALSE_SIGNAL_RANGE, num_pages)
    else:
        page_recall, false_rate = recall, recall * change_rate * (1.0 - precision) / precision
    return Instance(importance, change_rate, page_recall, false_rate, bandwidth=BANDWIDTH)


@spec("ncis-saved-crawls")
def measure(
    seed: int, *, precision: float | None, recall: float | None, num_pages: int, horizon: float
) -> dict[str, float]:
    """Return the share of GREEDY's bandwidth that GREEDY-NCIS saves at the same freshness.

    Both are simulated on the same events. A root search finds the bandwidth with equal freshness
    of the episode.
    """
    from scipy.optimize import brentq

    truth = pages(seed, num_pages, precision, recall)
    greedy: Any = policies.make("Greedy")
    informed: Any = policies.make("GreedyNCIS")
    wanted = simulate(truth, greedy, horizon, seed).freshness

    def more(bandwidth: float) -> float:
        instance = Instance(*(getattr(truth, name) for name in PARAMETERS), bandwidth=bandwidth)
        return simulate(instance, informed, horizon, seed).freshness - wanted

    needed = brentq(more, 0.02 * BANDWIDTH, 1.2 * BANDWIDTH, xtol=BANDWIDTH_TOLERANCE * BANDWIDTH)
    return {METRIC: 1.0 - needed / BANDWIDTH, "freshness": wanted}


SETTINGS = {f"m={size}": {"num_pages": size, "horizon": 200.0} for size in SIZES}
CELLS = {GRID.format(p, r): (p, r) for p in PRECISIONS for r in RECALLS}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the mean shares of crawls saved, in a grid of precision by recall."""
    data = means(table(rows, METRIC)).set_index("policy")
    data = data.assign(value=100.0 * data["mean"], half=100.0 * data["half"])
    drawn = data.loc[[DRAWN]].set_index("setting").value
    grid = data.join(pd.DataFrame(CELLS, index=["x", "y"]).T, how="inner")
    titles = {
        name: f"{SETTINGS[name]['num_pages']} pages; those of figure 6: {share:.1f}%"
        for name, share in drawn.items()
    }
    charts.heat_map(
        grid.assign(panel=grid.setting.map(titles)),
        path,
        charts.Frame(
            f"{TITLE}\nat equal freshness, bandwidth 100; framed: 10 to 20%; ±: 95% intervals",
            charts.Axis("precision (share of signals that are true)"),
            charts.Axis("recall (share of changes with a signal)"),
            size=(4.9, 4.3),
            shared="none",
        ),
        values="crawls saved (% of GREEDY's)",
        texts=lambda mean, half: f"{mean:.1f}\n±{half:.1f}" if half == half else f"{mean:.1f}",
        framed=(10.0, 20.0),
        limits=(0.0, 80.0),
    )


EXPERIMENT = Experiment(
    name="ncis-saved",
    title=TITLE,
    claim=(
        "GREEDY-NCIS needs fewer crawls than GREEDY for the same freshness. Live, 10 to 20% "
        "were saved on the hosts with signals, depending on their noise."
    ),
    metric=METRIC,
    repetitions=5,
    settings=measure_settings(
        SETTINGS,
        {DRAWN: partial(measure, precision=None, recall=None)}
        | {cell: partial(measure, precision=p, recall=r) for cell, (p, r) in CELLS.items()},
        "CrawlNCIS-v0",
        only={name: (DRAWN,) for name in EVERYWHERE if name not in GRIDS},
        quick={"horizon": 20.0},
        quick_settings=EVERYWHERE[:1],
    ),
    claims=CLAIMS,
    pictures={METRIC: plot},
)
