"""Comparisons of the benchmark: named settings, their policies, metrics and references.

The synthetic settings are instances of ``CrawlNCIS-v0``. Pages with fragments use
``CrawlLongevity-v0``, which ranks policies by the divergence of copies. A recorded trace is one
fixed history: the days after the fitted ones are divided into windows, which replace seeds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import policies
from crawl_envs.instances import names as synthetic_names
from crawl_envs.instances import traces
from crawl_envs.instances.longevity import CRAWLS_PER_PAGE, LAWS
from crawl_envs.types.arguments import one_of
from scripts.study.bounds import BASELINE, LINES, OPTIMUM, baseline, fitted_baseline, optimum
from scripts.study.entrants import (
    OF_FRAGMENTS,
    ON_FRAGMENTS,
    Candidate,
    applicable,
    candidates_of,
    entered,
    is_user_policy,
)
from scripts.study.settings import Setting

ROUND_ROBIN = "RoundRobin"
WINDOWS = 4
IGNORING_SIGNALS = ("RandomCrawl", "ChangeRateCrawl", ROUND_ROBIN, "LowDiscrepancy", "Greedy")
USING_SIGNALS = (
    *(ROUND_ROBIN, "GreedyNCISApprox:terms=1", "GreedyNCISApprox:terms=2", "LearningGreedyNCIS"),
    *(name for name in policies.names("page", paper="NCIS") if name != "GreedyNCISApprox"),
)
CONTINUOUS = ("ThresholdNCIS",)
"""Policies that crawl at any time, not in slots; with wrong parameters they miss the budget."""
METRICS = {
    "freshness": "importance-weighted share of page time fresh",
    "accuracy": "share of requests served fresh",
    "penalty": "mean penalty of missed changes",
    "offer_freshness": "share of offers that are fresh at midnight",
    "divergence": "importance-weighted mean distance of copies from live pages",
}
"""Descriptions of the metrics that can rank policies, by metric."""
DEFAULT_METRICS = {
    "CrawlHarmonic-v0": "penalty",
    "CrawlOffers-v1": "offer_freshness",
    OF_FRAGMENTS: "divergence",
}
"""The metric that ranks policies, by environment; all other environments use freshness."""
LOWER = ("penalty", "divergence")
"""Metrics of which lower values are better."""
BANDWIDTH = 100.0
"""Default crawls per unit time, except for pages with fragments."""
ID = re.compile(r"[^,]*-v\d+")
"""Ids of environments, such as CrawlNCIS-v0 or module:MyCrawl-v0."""
WINDOW_SLOTS = 5.0
"""Slots after a crawl within which the paper discards delayed signals."""
WITHOUT_SIGNALS = ("uniform",)
"""Instances without signals, on which only policies that ignore signals are compared."""


class Sizes(NamedTuple):
    """Sizes of synthetic settings (first three fields) and of traces; options have the same names.

    A bandwidth of None means the default of the setting.
    """

    num_pages: int
    bandwidth: float | None
    horizon: float
    days_per_crawl: float
    signals: str

    def check(self) -> None:
        """Raise ValueError for a size out of range."""
        if self.num_pages < 1:
            raise ValueError(f"--num-pages must be >= 1, got {self.num_pages}")
        for name, value in self._asdict().items():
            if isinstance(value, float) and not (math.isfinite(value) and value > 0.0):
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} must be finite and > 0, got {value:g}")

    def arguments(self, name: str, bandwidth: float) -> dict[str, Any]:
        """Return the environment's arguments for the instance ``name`` with these sizes."""
        sizes = {"num_pages": self.num_pages, "bandwidth": bandwidth, "horizon": self.horizon}
        return {"instance": name, **sizes}


@dataclass(frozen=True)
class Comparison:
    """A setting, and how its results are shown.

    Attributes:
        setting: environment, policies and bounds.
        title: title of tables and pictures.
        metrics: metrics shown; the first ranks policies.
        references: labels of policies or bounds that paired differences refer to; the first label
            is drawn. With several metrics, the table has only the first label.
        note: caption of the table.
        lines: descriptions of the bounds, for legends.
        over: name of the repetitions, in the plural.
    """

    setting: Setting
    title: str
    metrics: tuple[str, ...]
    references: tuple[str, ...]
    note: str
    lines: Mapping[str, str] = field(default_factory=dict)
    over: str = "seeds"


def is_id(name: str) -> bool:
    """Return whether the name of a setting is the id of an environment, such as CrawlNCIS-v0."""
    return ID.fullmatch(name) is not None


def choices() -> tuple[str, ...]:
    """Return the names of all settings: synthetic instances and shipped traces."""
    return (*synthetic_names(), *traces.shipped())


def comparisons(
    names: Sequence[str], trace: str | None, specs: Sequence[str], sizes: Sizes
) -> list[Comparison]:
    """Return one comparison per named setting, and one for the user's trace if there is one.

    Raises:
        ValueError: an unknown setting or policy, or one that its environment rejects.
    """
    for name in names:
        if not is_id(name):
            one_of("setting", name, choices(), "the id of an environment")
    candidates_of(specs)
    compared = [
        compare(name, specs, sizes) for name in dict.fromkeys((*names, *filter(None, [trace])))
    ]
    setting_names = [item.setting.name for item in compared]
    if len(set(setting_names)) < len(setting_names):
        raise ValueError(f"--trace must have a name of its own, got setting {setting_names[-1]!r}")
    for setting in (item.setting for item in compared):
        where, named = f"setting {setting.name}: ", setting.policies
        mine = {label: Candidate(label, named[label]) for label in named if is_user_policy(label)}
        refused = applicable(mine, setting.id, setting.arguments_of(0), where)[1] if mine else {}
        for label, reason in refused.items():
            raise ValueError(f"{where}{label} cannot act here: {reason}")
        setting.check()
    return compared


def compare(name: str, specs: Sequence[str], sizes: Sizes) -> Comparison:
    """Return the comparison of policies in a setting: its name, an id, or a trace's folder.

    Raises:
        ValueError: errors of :func:`recorded`, if the setting is a trace.
    """
    if name in LAWS:
        return of_fragments(name, specs, sizes)
    if name in synthetic_names():
        return synthetic(name, specs, sizes)
    return of_id(name, specs) if is_id(name) else recorded(name, specs, sizes)


def synthetic(name: str, specs: Sequence[str], sizes: Sizes) -> Comparison:
    """Return the comparison of policies on a named synthetic instance."""
    bandwidth = BANDWIDTH if sizes.bandwidth is None else sizes.bandwidth
    bounds: dict[str, Callable[..., Any]] = {OPTIMUM: optimum, BASELINE: baseline}
    policies_here: tuple[str, ...] = (*USING_SIGNALS, *CONTINUOUS)
    note = (
        f"policies with signals can exceed it. {OPTIMUM}: optimal thresholds with signals "
        "(Theorem 1); an upper bound in the long run, but not of an episode, which starts with "
        "all pages fresh."
    )
    if name == "delayed":
        discarding = f"GreedyNCIS:delay_window={WINDOW_SLOTS / bandwidth:g}"
        policies_here = (*USING_SIGNALS, discarding, "GreedyNCISDelayed")
    if name in WITHOUT_SIGNALS:
        policies_here, note = IGNORING_SIGNALS, "an upper bound in the long run."
        del bounds[OPTIMUM]
    setting = Setting(
        name,
        "CrawlNCIS-v0",
        sizes.arguments(name, bandwidth),
        **entered(candidates_of(specs or policies_here)),
        bounds=bounds,
    )
    return Comparison(
        setting,
        title=(
            f"{name}: {sizes.num_pages} pages, {bandwidth:g} crawls per unit time, "
            f"horizon {sizes.horizon:g}"
        ),
        metrics=("accuracy", "freshness"),
        references=tuple(bounds),
        note=f"{BASELINE}: optimal even intervals without signals (eq. 5); {note}",
        lines=LINES,
    )


def of_fragments(name: str, specs: Sequence[str], sizes: Sizes) -> Comparison:
    """Return the comparison of policies on pages with fragments, by the divergence of copies.

    Round robin is always included. Oracles are included if they are named.
    """
    every_page = CRAWLS_PER_PAGE * sizes.num_pages
    bandwidth = every_page if sizes.bandwidth is None else sizes.bandwidth
    candidates = entered(_with_round_robin(specs or ON_FRAGMENTS))
    return Comparison(
        Setting(name, OF_FRAGMENTS, sizes.arguments(name, bandwidth), **candidates),
        title=(
            f"{name}: {sizes.num_pages} pages with fragments, {bandwidth:g} crawls per day, "
            f"{sizes.horizon:g} days"
        ),
        metrics=("divergence", "freshness"),
        references=(ROUND_ROBIN,),
        note=(
            "divergence: importance-weighted mean distance between copies and live pages, lower is "
            "better; freshness: share of page time without an update since the last crawl."
        ),
    )


def of_id(env_id: str, specs: Sequence[str]) -> Comparison:
    """Return the comparison of policies in the environment ``env_id`` with its default arguments.

    Round robin is always included.
    """
    return Comparison(
        Setting(env_id, env_id, {}, **entered(_with_round_robin(specs or USING_SIGNALS))),
        title=env_id,
        metrics=("freshness",),
        references=(ROUND_ROBIN,),
        note="freshness: importance-weighted share of page time that is fresh.",
    )


def _with_round_robin(names: Sequence[str]) -> dict[str, Candidate]:
    """Return the candidates of names by label; round robin is put in front if it is missing."""
    return candidates_of(names if ROUND_ROBIN in names else (ROUND_ROBIN, *names))


def recorded(trace: str, specs: Sequence[str], sizes: Sizes) -> Comparison:
    """Return the comparison of policies on windows of a recorded trace, by its name or folder.

    Raises:
        ValueError: the trace or its parameters do not exist, or the days after the fit are too few
            to crawl every page.
    """
    kind = traces.check_signals(sizes.signals)
    folder = traces.find(trace)
    record = traces.load(folder)
    fitted = traces.load_parameters(traces.parameters_path(folder, kind), record)
    if fitted.end >= record.days:
        raise ValueError(f"{folder}: parameters are fitted on all days, so none are left to test")
    length = (record.days - fitted.end) / WINDOWS
    if length < sizes.days_per_crawl:
        raise ValueError(
            f"{folder}: the {WINDOWS} windows after the fitted days are {length:.3g} days long, "
            f"too short to crawl every page once with {sizes.days_per_crawl:g} days per crawl; "
            "choose fewer days per crawl"
        )
    edges = np.linspace(fitted.end, record.days, WINDOWS + 1).tolist()
    setting = Setting(
        record.name,
        "CrawlTrace-v0",
        {"trace": trace, "signals": kind, "days_per_crawl": sizes.days_per_crawl},
        **entered(
            _with_round_robin(specs or (IGNORING_SIGNALS if kind == "none" else USING_SIGNALS))
        ),
        bounds={BASELINE: partial(fitted_baseline, trace=trace)},
        windows=tuple(pairwise(edges)),
    )
    return Comparison(
        setting,
        title=(
            f"{record.name}: recorded, {kind} signals, {sizes.days_per_crawl:g} days per crawl "
            "and page"
        ),
        metrics=("freshness",),
        references=(ROUND_ROBIN, BASELINE),
        lines={BASELINE: f"{BASELINE} (eq. 5 with fitted rates: no bound)"},
        over="windows",
        note=(
            f"One recorded history: intervals are over {WINDOWS} windows of {length:g} days, each "
            f"started with fresh pages, and not over seeds. A trace has no requests. {BASELINE}: "
            "eq. 5 with the rates fitted on earlier days; no bound."
        ),
    )
