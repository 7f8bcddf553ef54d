"""Comparisons of the benchmark: named settings, their policies, metrics and references.

The synthetic settings are instances of ``CrawlNCIS-v0``, or of ``CrawlLongevity-v0`` for pages with
fragments, ranked by the divergence of copies. A recorded trace is one fixed history, the same for
all seeds. Therefore the days after those of the fitted parameters are divided into windows, which
take the place of seeds.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import policies
from crawl_envs.evaluation import PolicyFactory
from crawl_envs.instances import names as synthetic_names
from crawl_envs.instances import traces
from crawl_envs.instances.longevity import CRAWLS_PER_PAGE, LAWS
from scripts.cli.options import plain_value
from scripts.study.bounds import BASELINE, LINES, OPTIMUM, baseline, fitted_baseline, optimum
from scripts.study.settings import Setting

ROUND_ROBIN = "RoundRobin"
WINDOWS = 4
IGNORING_SIGNALS = ("RandomCrawl", "ChangeRateCrawl", ROUND_ROBIN, "LowDiscrepancy", "Greedy")
USING_SIGNALS = (
    *(ROUND_ROBIN, "GreedyNCISApprox:terms=1", "GreedyNCISApprox:terms=2", "LearningGreedyNCIS"),
    *(name for name in policies.names("page", paper="NCIS") if name != "GreedyNCISApprox"),
)
CONTINUOUS = ("ThresholdNCIS",)
"""Policies that crawl at any time; with misspecified parameters, they spend another budget."""
OF_FRAGMENTS = "CrawlLongevity-v0"
"""The environment of pages with fragments."""
ON_FRAGMENTS = (
    ROUND_ROBIN,
    *(
        name
        for name in policies.names(family="fragments", oracle=False)
        if name != "CurrentDivergence"
    ),
)
LOWER = ("penalty", "divergence")
"""Metrics for which lower is better."""
BANDWIDTH = 100.0
"""Default crawls per unit time, except for pages with fragments."""
ID = re.compile(r"[^,]*-v\d+")
"""Ids of environments, such as CrawlNCIS-v0 or module:MyCrawl-v0."""
WINDOW_SLOTS = 5.0
"""Slots after a crawl within which the paper discards delayed signals."""
WITHOUT_SIGNALS = ("uniform",)
"""Instances without signals: policies with and without them act alike."""


class Sizes(NamedTuple):
    """Sizes of synthetic settings (the first three) and of traces, named as the options.

    A bandwidth of None means the default of the setting.
    """

    num_pages: int
    bandwidth: float | None
    horizon: float
    days_per_crawl: float
    signals: str


@dataclass(frozen=True)
class Comparison:
    """A setting, and the presentation of its rows.

    Attributes:
        setting: the setting.
        title: title of tables and pictures.
        metrics: metrics shown; the first ranks policies.
        references: labels for paired differences; the first is drawn, and with several metrics
            only the first is in the table.
        lines: descriptions of the bounds, for legends.
        over: name of the repetitions, in the plural.
        note: caption of the table.
    """

    setting: Setting
    title: str
    metrics: tuple[str, ...]
    references: tuple[str, ...]
    lines: Mapping[str, str]
    over: str
    note: str


def is_id(name: str) -> bool:
    """Return whether a name of a setting is the id of an environment."""
    return ID.fullmatch(name) is not None


def choices() -> tuple[str, ...]:
    """Return the names of the settings."""
    return (*synthetic_names(), *traces.shipped())


def policy_factories(specs: Sequence[str]) -> dict[str, PolicyFactory]:
    """Parse policies of the command line: ``Name`` or ``Name:key=value``.

    A policy of one's own is ``module:Class`` in place of ``Name``.

    Raises:
        ValueError: an unknown name, or a malformed argument.
    """
    factories: dict[str, PolicyFactory] = {}
    for spec in specs:
        name, given = _parts(spec)
        policies.find(name)
        arguments = dict(_argument(spec, text) for text in given)
        if ":" in name:
            arguments["digest"] = _digest(policies.find(name))
        factories[spec] = partial(own if ":" in name else policies.make, name, **arguments)
    return factories


def own(name: str, env: Any, *, digest: str, **arguments: Any) -> Any:
    """Return a policy of one's own; the digest of its file distinguishes its rows from others."""
    return policies.make(name, env, **arguments)


def _digest(policy: type) -> str:
    """Return a hash of the file of a class."""
    return hashlib.sha256(Path(inspect.getfile(policy)).read_bytes()).hexdigest()[:16]


def _parts(spec: str) -> tuple[str, list[str]]:
    """Return the name of a policy of the command line, and the texts of its arguments."""
    name, *given = spec.split(":")
    if given and "=" not in given[0] and name not in policies.names(fragments=True):
        return f"{name}:{given[0]}", given[1:]
    return name, given


def is_policy(spec: str) -> bool:
    """Return whether a text of the command line names a policy, one's own or a registered one."""
    name = _parts(spec)[0]
    return ":" in name or name in policies.names(fragments=True)


def _argument(spec: str, text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key.isidentifier() and equals and value):
        raise ValueError(f"policy must be Name or Name:key=value, got {spec!r}")
    return key, plain_value(value)


def is_oracle(label: str) -> bool:
    """Return whether a label is of a policy that reads the hidden state."""
    name = _parts(label)[0]
    if ":" in name:
        with suppress(ValueError):  # a label of something else
            return bool(getattr(policies.find(name), "oracle", False))
    return name in policies.names(fragments=True, oracle=True)


def compare(name: str, specs: Sequence[str], sizes: Sizes) -> Comparison:
    """Return the comparison of policies in a named setting or id, or on the trace of a folder.

    Raises:
        ValueError: as for :func:`recorded`.
    """
    if name in LAWS:
        return of_fragments(name, specs, sizes)
    if name in synthetic_names():
        return synthetic(name, specs, sizes)
    if is_id(name):
        return of_id(name, specs)
    return recorded(name, specs, sizes)


def _that_differ(name: str, bandwidth: float) -> tuple[str, ...]:
    """Return the policies that act differently on a named synthetic instance."""
    if name in WITHOUT_SIGNALS:
        return IGNORING_SIGNALS
    if name == "delayed":
        discarding = f"GreedyNCIS:delay_window={WINDOW_SLOTS / bandwidth:g}"
        return (*USING_SIGNALS, discarding, "GreedyNCISDelayed")
    return (*USING_SIGNALS, *CONTINUOUS)


def synthetic(name: str, specs: Sequence[str], sizes: Sizes) -> Comparison:
    """Return the comparison of policies on a named synthetic instance."""
    has_signals = name not in WITHOUT_SIGNALS
    bandwidth = BANDWIDTH if sizes.bandwidth is None else sizes.bandwidth
    chosen = specs or _that_differ(name, bandwidth)
    setting = Setting(
        name=name,
        id="CrawlNCIS-v0",
        arguments={
            "instance": name,
            "num_pages": sizes.num_pages,
            "bandwidth": bandwidth,
            "horizon": sizes.horizon,
        },
        policies=policy_factories(chosen),
        bounds={OPTIMUM: optimum, BASELINE: baseline} if has_signals else {BASELINE: baseline},
    )
    note = f"{BASELINE}: optimal even intervals without signals (eq. 5); "
    if has_signals:
        note += (
            f"policies with signals can exceed it. {OPTIMUM}: optimal thresholds with signals "
            "(Theorem 1); an upper bound in the long run, but not of an episode, which starts with "
            "all pages fresh."
        )
    else:
        note += "an upper bound in the long run."
    return Comparison(
        setting,
        title=(
            f"{name}: {sizes.num_pages} pages, {bandwidth:g} crawls per unit time, "
            f"horizon {sizes.horizon:g}"
        ),
        metrics=("accuracy", "freshness"),
        references=tuple(setting.bounds),
        lines=LINES,
        over="seeds",
        note=note,
    )


def of_fragments(name: str, specs: Sequence[str], sizes: Sizes) -> Comparison:
    """Return the comparison of policies by the divergence of copies, on pages with fragments.

    Round robin is always included, oracles only if named.
    """
    given = sizes.bandwidth
    bandwidth = CRAWLS_PER_PAGE * sizes.num_pages if given is None else given
    chosen = list(specs or ON_FRAGMENTS)
    if ROUND_ROBIN not in chosen:
        chosen.insert(0, ROUND_ROBIN)
    setting = Setting(
        name=name,
        id=OF_FRAGMENTS,
        arguments={
            "instance": name,
            "num_pages": sizes.num_pages,
            "bandwidth": bandwidth,
            "horizon": sizes.horizon,
        },
        policies=policy_factories(chosen),
    )
    return Comparison(
        setting,
        title=(
            f"{name}: {sizes.num_pages} pages with fragments, {bandwidth:g} crawls per day, "
            f"{sizes.horizon:g} days"
        ),
        metrics=("divergence", "freshness"),
        references=(ROUND_ROBIN,),
        lines={},
        over="seeds",
        note=(
            "divergence: importance-weighted mean distance between copies and live pages, lower is "
            "better; freshness: share of page time without an update since the last crawl."
        ),
    )


def of_id(env_id: str, specs: Sequence[str]) -> Comparison:
    """Return the comparison of policies in an environment with its registered arguments.

    Round robin is always included.
    """
    chosen = list(specs or USING_SIGNALS)
    if ROUND_ROBIN not in chosen:
        chosen.insert(0, ROUND_ROBIN)
    return Comparison(
        Setting(name=env_id, id=env_id, arguments={}, policies=policy_factories(chosen)),
        title=env_id,
        metrics=("freshness",),
        references=(ROUND_ROBIN,),
        lines={},
        over="seeds",
        note="freshness: importance-weighted share of page time that is fresh.",
    )


def recorded(trace: str, specs: Sequence[str], sizes: Sizes) -> Comparison:
    """Return the comparison of policies on windows of a recorded trace, by its name or folder.

    Raises:
        ValueError: no such trace, missing parameters, no days after those of the fit, or too few
            to crawl every page.
    """
    kind = traces.check_signals(sizes.signals)
    folder = traces.find(trace)
    record = traces.load(folder)
    fitted = traces.load_parameters(traces.parameters_path(folder, kind), record)
    if fitted.end >= record.days:
        raise ValueError(f"{folder}: parameters are fitted on all days, so none are left to test")
    edges = np.linspace(fitted.end, record.days, WINDOWS + 1)
    windows = tuple((float(start), float(end)) for start, end in pairwise(edges))
    if windows[0][1] - windows[0][0] < sizes.days_per_crawl:
        raise ValueError(
            f"{folder}: the {WINDOWS} windows after the fitted days are "
            f"{windows[0][1] - windows[0][0]:.3g} days long, too short to crawl every page once "
            f"with {sizes.days_per_crawl:g} days per crawl; choose fewer days per crawl"
        )
    chosen = list(specs or (IGNORING_SIGNALS if kind == "none" else USING_SIGNALS))
    if ROUND_ROBIN not in chosen:
        chosen.insert(0, ROUND_ROBIN)
    setting = Setting(
        name=record.name,
        id="CrawlTrace-v0",
        arguments={"trace": trace, "signals": kind, "days_per_crawl": sizes.days_per_crawl},
        policies=policy_factories(chosen),
        bounds={BASELINE: partial(fitted_baseline, trace=trace)},
        windows=windows,
    )
    days = windows[0][1] - windows[0][0]
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
            f"One recorded history: intervals are over {WINDOWS} windows of {days:g} days, each "
            f"started with fresh pages, and not over seeds. A trace has no requests. {BASELINE}: "
            "eq. 5 with the rates fitted on earlier days; no bound."
        ),
    )
