"""Comparison of policies on the same events.

:func:`simulate` runs a policy in compiled code, with the same crawls as the ``step()`` loop;
:func:`evaluate` yields flat rows for policies and seeds; :func:`summarize` computes intervals,
paired by seed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from crawl_envs import FAMILIES
from crawl_envs.envs.overrides import beyond_lanes
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.sim.clock import clock_rows, slots_until
from crawl_envs.sim.divergence import Penalty, penalty_increments
from crawl_envs.sim.law import has_mortal_pages
from crawl_envs.sim.streams import PageSets, generator, roots
from crawl_envs.sim.tape import Tape
from crawl_envs.spaces.rewards import metrics
from crawl_envs.types import Instance, Ledger, Policy
from crawl_envs.types.arguments import flag, one_of, quantity, whole
from crawl_envs.types.compiled_policies import (
    CompilablePolicy,
    Compiled,
    CompiledRates,
    CompiledSequence,
    CompiledThresholds,
)
from crawl_envs.worlds.budgets import MAX_CRAWLS
from crawl_envs.worlds.lanes import Lanes
from crawl_envs.worlds.offers.law import Market
from crawl_envs.worlds.rollouts import ONE_LANE, Rollout, play_form, roll


def simulate(
    instance: Instance,
    policy: CompilablePolicy,
    horizon: float,
    seed: int = 0,
    tape: Tape | None = None,
    *,
    penalty: Penalty | None = None,
    requests: bool = True,
    pages: PageSets = "any",
) -> Rollout:
    """Run an episode of a policy on an instance in compiled code, and return its Rollout.

    Policies with one page per slot crawl as in ``step()`` of an environment with ``action="page"``
    after ``reset(seed=seed, options={"instance": instance})``. On the same events, threshold
    policies (:class:`crawl_envs.types.compiled_policies.CompiledThresholds`) crawl pages when due,
    and rate policies (``CompiledRates``) as in ``step()`` with ``action="rates"`` if neither the
    budget nor a token bucket limits them; the ledgers of both end exactly at the horizon.

    Args:
        instance: true parameters, all revealed to the policy.
        policy: a policy with a compiled form.
        horizon: length of the episode in the instance's unit, at least one slot.
        seed: seed of the events and of the policy.
        tape: events in place of random ones.
        penalty: cost of undetected changes for ``rollout.ledger.cost``: ``harmonic``, ``binary`` or
            a table C(0), C(1), ..; None counts no penalty.
        requests: whether there are requests; ``CrawlHarmonic-v0`` has none.
        pages: stream of the seed, as of the environment: ``any``, ``train`` or ``test``.

    Raises:
        ValueError: a market, whose rates are not constant (use ``CrawlOffers-v1``), a horizon
            shorter than one slot, more events or crawls than an episode may have, a tape of another
            number of pages, a tape with births and deaths for a fixed sequence of crawls, or
            infeasible thresholds.
    """
    if not isinstance(instance, Instance):
        raise ValueError(f"instance must be an Instance, got {instance!r}")
    if isinstance(instance, Market):
        raise ValueError("instance must not be a Market: play it in CrawlOffers-v1")
    whole("seed", seed, 0)
    flag("requests", requests)
    one_of("pages", pages, PageSets)
    if isinstance(policy, type) or not isinstance(policy, CompilablePolicy):
        raise ValueError(
            "policy must have a compiled form (one that learns has none: play it in an "
            f"environment), got {policy!r}"
        )
    if not isinstance(tape, Tape | None):
        raise ValueError(f"tape must be a Tape, got {tape!r}")
    if penalty is not None:
        penalty_increments(penalty, "penalty")
    rows = clock_rows(instance.bandwidth, instance.bandwidth_steps)
    slots = slots_until(rows, quantity("horizon", horizon, above=0.0))
    _check_crawls(instance, slots)
    form = policy.compile(instance.problem(), slots, generator(roots(seed, pages).rng, 0))
    mortal = has_mortal_pages(instance) if tape is None else tape.mortal
    if isinstance(form, CompiledSequence) and mortal:
        raise ValueError("policy must be an index policy where pages are born and die")
    world: Any = {"tape": tape, "penalty": penalty, "requests": requests, "pages": pages}
    return play_form(form, instance, horizon, seed, **world)


def _check_crawls(instance: Instance, slots: int) -> None:
    """Raise ValueError if a compiled rollout would have more than MAX_CRAWLS crawls."""
    if slots > MAX_CRAWLS:
        raise ValueError(
            f"bandwidth must give at most {MAX_CRAWLS:g} crawls in an episode that compiled code "
            f"plays, got {slots:g} with bandwidth {instance.bandwidth:g}"
        )


class Row(NamedTuple):
    """The value of one metric for a policy and a seed, in a setting of an environment."""

    id: str
    setting: str
    policy: str
    seed: int
    metric: str
    value: float


BUDGET_SHARE = "budget_share"
"""Name of the metric: crawls of an episode divided by the crawls its budget allows."""

PolicyFactory = Callable[[Any], Policy]
Bound = Callable[[Instance], float | Mapping[str, float]]


def make_env(id: str, **arguments: Any) -> gymnasium.Env[Any, Any]:
    """Make a crawling environment, of this package or registered by others.

    Args:
        id: id of a registered environment; for ``module:Name-v0`` the module is imported first.
        **arguments: arguments of ``gymnasium.make``.

    Raises:
        ValueError: an unknown id, an environment of another kind, or an argument outside its range.
        TypeError: an argument that does not exist.
    """
    if not isinstance(id, str):
        raise ValueError(f"env_id must be a string, got {id!r}")
    try:
        env = gymnasium.make(id, **arguments)
    except (gymnasium.error.Error, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"env_id must be one of {', '.join(FAMILIES)} or another registered id, got {id!r}: "
            f"{reason}"
        ) from None
    if not isinstance(env.unwrapped, CrawlEnv):
        kind = type(env.unwrapped).__name__
        raise ValueError(f"env_id must be of a crawling environment, got {id!r}, a {kind}")
    return env


def evaluate(
    id: str,
    policies: Mapping[str, PolicyFactory],
    seeds: Iterable[int],
    *,
    setting: str = "",
    bounds: Mapping[str, Bound] | None = None,
    compiled: bool = True,
    budget_share: bool = False,
    **arguments: Any,
) -> Iterator[Row]:
    """Yield the metrics of every policy on every seed; events depend on the seed only.

    Undefined metrics are NaN: ``accuracy`` without requests or clicks, and ``offer_freshness``,
    which is measured at midnight, for horizons shorter than a day.

    Args:
        id: see :func:`make_env`.
        policies: policy factories, functions of an environment, by label.
        seeds: integers >= 0.
        setting: name of the arguments in the rows.
        bounds: functions of an instance, by label, that return a freshness, or a value by metric;
            each yields rows like a policy.
        compiled: whether to run policies with a compiled form in compiled code, which is faster
            and gives the same crawls.
        budget_share: whether policies also have the metric ``budget_share``, their crawls over
            those that the budget allows; with ``action="refresh"`` it can be far above 1.
        **arguments: arguments of ``gymnasium.make``.

    Raises:
        ValueError: an argument is invalid, or a seed occurs twice.
    """
    flag("compiled", compiled)
    flag("budget_share", budget_share)
    for name, functions in (("policies", policies), ("bounds", bounds or {})):
        if not isinstance(functions, Mapping) or not all(map(callable, functions.values())):
            raise ValueError(f"{name} must be a mapping of labels to functions, got {functions!r}")
    for seed in _distinct(seeds):
        env = make_env(id, **arguments)
        env.reset(seed=seed)
        core: Any = env.unwrapped
        for label, bound in (bounds or {}).items():
            found = bound(core.instance)
            if not isinstance(found, Mapping):
                found = {"accuracy": found, "freshness": found}
            for metric, value in found.items():
                yield Row(id, setting, label, seed, metric, value)
        for label, factory in policies.items():
            ledger = play(env, factory(env), seed, compiled=compiled)
            for metric, value in metrics(ledger).items():
                yield Row(id, setting, label, seed, metric, value)
            if budget_share:
                share = core.lanes.budget_share(0, ledger)
                yield Row(id, setting, label, seed, BUDGET_SHARE, share)
        env.close()


def _distinct(seeds: Iterable[int]) -> list[int]:
    """Return the seeds as a list; ValueError if one is no integer >= 0, or occurs twice."""
    if not isinstance(seeds, Iterable):
        raise ValueError(f"seeds must be integers, got {seeds!r}")
    given = [whole("seeds", seed, 0) for seed in seeds]
    for seed, times in Counter(given).items():
        if times > 1:
            raise ValueError(f"seeds must differ, got {seed} {times} times")
    return given


def play(
    env: gymnasium.Env[Any, Any], policy: Policy, seed: int, *, compiled: bool = True
) -> Ledger:
    """Run the first episode of a seed and return its ledger; see :func:`rollout_of`."""
    return rollout_of(env, policy, seed, compiled=compiled).ledger


def rollout_of(
    env: gymnasium.Env[Any, Any], policy: Policy, seed: int, *, compiled: bool = True
) -> Rollout:
    """Run the first episode of a seed and return its crawls and ledger.

    Args:
        env: a single crawl environment with the seed's instance.
        policy: policy of ``env``; its ``observe``, if any, is called with the log of every step.
        seed: seed of the events.
        compiled: whether to run a policy with a compiled form in compiled code. Threshold policies
            have no page actions, and always run compiled. An environment with wrappers, a limit of
            steps or overridden methods is stepped, as it is.

    Raises:
        ValueError: an argument is invalid, or such an environment and a threshold policy.
    """
    core: Any = getattr(env, "unwrapped", None)
    if not isinstance(core, CrawlEnv):
        raise ValueError(f"env must be a crawling environment, got {env!r}")
    if isinstance(policy, type) or not isinstance(policy, CompilablePolicy | Policy):
        raise ValueError(f"policy must be a policy for env, got {policy!r}")
    whole("seed", seed, 0)
    if core.action_form in ("page", "rates") and isinstance(policy, CompilablePolicy):
        _check_crawls(core.instance, core.num_slots())
        form = policy.compile(core.problem, core.num_slots(), core.rng())
        timed, beyond = isinstance(form, CompiledThresholds), beyond_lanes(env)
        if timed and beyond:
            raise ValueError(
                "env must have no wrappers, limits or overridden methods for a policy that chooses "
                f"the times of its crawls, which compiled code plays, got {', '.join(beyond)}"
            )
        if timed or (compiled and not beyond and _playable(form, core.lanes)):
            lanes = core.make_lanes(1, observed=False)
            lanes.begin(ONE_LANE, [seed], [core.instance], play=False)
            return roll(lanes, form)
    if not hasattr(policy, "predict"):
        raise ValueError(
            f"policy must be bound to env to be stepped, got {policy!r}: use policies.bind"
        )
    observation, _ = env.reset(seed=seed)
    state, start, over = None, np.ones(1, np.bool_), False
    pages, times = [np.zeros(0, np.int64)], [np.zeros(0)]
    learn = getattr(policy, "observe", None)
    if learn is not None:
        learn(core.last_log())
    while not over:
        action, state = policy.predict(observation, state, start, deterministic=True)
        observation, _, terminated, over, _ = env.step(action)
        over, start = over or terminated, np.zeros(1, np.bool_)
        log = core.last_log()
        pages.append(log.page.copy())
        times.append(log.time.copy())
        if learn is not None:
            learn(log)
    crawls = np.concatenate(pages), np.concatenate(times)
    return Rollout(*crawls, core.ledger(), core.instance.num_pages)


def _playable(form: Compiled, lanes: Lanes) -> bool:
    """Return whether a compiled rollout of a policy gives what stepping the environment gives."""
    if isinstance(form, CompiledRates):
        budget, instance = lanes.budget, lanes.instance(0)
        epochs = int(lanes.lead_of(instance)) + lanes.num_slots(0)
        if budget is None or not lanes.crawls_at_random:
            return False
        return budget.keeps_to(form, instance, epochs)
    mortal = lanes.mortal if lanes.tape is None else lanes.tape.mortal
    return lanes.form.name == "page" and not (isinstance(form, CompiledSequence) and mortal)


class Summary(NamedTuple):
    """Mean of a metric of a policy over seeds, with half-widths of 95% Student intervals.

    ``difference`` is the mean difference to the reference policy, paired by seed; NaN without a
    reference.
    """

    setting: str
    policy: str
    seeds: int
    mean: float
    half_width: float
    difference: float
    difference_half_width: float


def mean_and_half_width(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half-width of its 95% Student interval, NaN below two values."""
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return (float(values[0]) if count else math.nan), math.nan
    spread = float(np.std(values, ddof=1)) / math.sqrt(count)
    return float(np.mean(values)), float(stdtrit(count - 1, 0.975)) * spread


def summarize(rows: Iterable[Row], metric: str, reference: str | None = None) -> list[Summary]:
    """Return the mean of a metric over seeds for each setting and policy, in order of appearance.

    Args:
        rows: rows of :func:`evaluate`.
        metric: name of the metric.
        reference: policy or bound for paired differences.

    Raises:
        ValueError: no row has the metric, or none has the reference.
    """
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    metrics, labels = set(), set()
    for row in rows:
        metrics.add(row.metric)
        labels.add(row.policy)
        if row.metric == metric:
            values[row.setting, row.policy][row.seed] = row.value
    if metrics:
        one_of("metric", metric, sorted(metrics))
    if labels and reference is not None:
        one_of("reference", reference, sorted(labels))
    summaries = []
    for (setting, policy), by_seed in values.items():
        base = values.get((setting, reference or ""), {})
        shared = [by_seed[seed] - base[seed] for seed in by_seed if seed in base]
        alone, paired = map(mean_and_half_width, (list(by_seed.values()), shared))
        summaries.append(Summary(setting, policy, len(by_seed), *alone, *paired))
    return summaries
