"""``CrawlHarmonic-v0``: every change that was not crawled costs, and some sources tell of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import FamilyVectorEnv, NativeVectorEnv
from crawl_envs.instances import generator_of
from crawl_envs.sim.penalties import Penalty
from crawl_envs.spaces.actions import ACTION_FORMS, SLOT_FORMS, action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.worlds.pages.lanes import Lanes
from crawl_envs.worlds.pages.rate_lanes import EpochLanes, Overspend

HarmonicReward: TypeAlias = Literal["penalty", "freshness"]
REWARDS: tuple[HarmonicReward, ...] = get_args(HarmonicReward)


def _deciding(
    action: str, generator: Any, epochs: Mapping[str, Any], slots: Mapping[str, Any]
) -> Callable[..., Lanes]:
    """Return the class of lanes of an action form, with the arguments of that form.

    Args:
        action: name of the form.
        generator: of instances.
        epochs: arguments of the form ``rates``, None where not given.
        slots: arguments of the other forms, likewise.

    Raises:
        ValueError: an unknown form, or an argument of another form.
    """
    if action == "rates":
        _refuse(slots, "actions of slots", action)
        highest = max(generator.bandwidth, *(rate for _, rate in generator.bandwidth_steps), 0.0)
        return partial(EpochLanes, highest=highest, **_given(epochs))
    if action in SLOT_FORMS:
        _refuse(epochs, "action 'rates'", action)
        return partial(Lanes, form=action_form(action, generator.num_pages, **_given(slots)))
    raise ValueError(f"action must be one of {ACTION_FORMS}, got {action!r}")


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _refuse(others: Mapping[str, Any], whose: str, action: str) -> None:
    """Raise ValueError where an argument of another action form was given."""
    for name, value in _given(others).items():
        raise ValueError(f"{name} is for {whose}, got {value!r} with action {action!r}")


class CrawlHarmonic(CrawlEnv, SingleEnv):
    """Harmonic staleness under mixed observability: the set-up of Kolobov et al. (2019).

    ## Description

    A tracker holds copies of m sources, its pages. Page i has importance mu_i and changes at the
    Poisson rate Delta_i, whatever the tracker does. Most pages are *unobserved*: only a crawl
    finds out whether they have changed, and not how often. The others have *complete observation*:
    their every change sends a signal at once. A page with n changes that no crawl has found costs
    mu_i C(n) per unit of time, and C(n) = H(n) = 1 + 1/2 + ... + 1/n by default: the first change
    matters most, but every further one matters too, so that no page is ever given up. Crawls are
    limited to R per unit of time.

    ## Instance

    Drawn from the seed at every seeded reset, and kept otherwise: ``mixed`` has importance and
    change rate from U(0, 1) and complete observation of half of the pages, chosen at random;
    ``lambdacrawl`` is a stand-in for the set of the paper's experiments, per day. The instances of
    ``CrawlNCIS-v0`` serve too: pages whose recall is 1 and whose false-signal rate is 0 have
    complete observation, all others count as unobserved, though their signals are seen.
    ``reset(options={"instance": instance})`` pins an instance of one's own.

    ## Action Space

    - ``action="rates"``: ``Box(0, max(R, 1), (m,))`` float64, a decision for an epoch. An
      unobserved page is crawled at the instants of a Poisson process of the given rate (eq. 3), a
      page with complete observation at each of its signals with the given probability (eq. 6).
      The budget is on what is declared: the sum of rates and of probabilities times change rates.
      More than the bandwidth is scaled down (``overspend="scale"``, which takes any rates, also
      beyond the box, and probabilities above 1 for 1) or an error (``"error"``, which is not for
      agents that explore). The box ends at the bandwidth the environment was made with.
      Change rates that are hidden count as the policy says in ``env.unwrapped.declare``, or as
      (N + 1/2) / (t + 1/2) of the N signals heard up to time t. What is really spent is in
      ``info``, and ``bucket`` can cap it.
    - ``action="page"``, ``"scores"`` or ``"refresh"``: one crawl per slot of 1 / R, on the same
      events; as in ``CrawlNCIS-v0``, ``probe=True`` included.

    ## Observation Space

    ``Box(m, F)`` float32; a row per page with the columns ``env.unwrapped.features``:

    | column | range | meaning |
    |---|---|---|
    | elapsed | [0, horizon] | time since the last crawl, saturated at the horizon |
    | signals | [0, 1000] | signals received since, saturated |
    | changed | -1, 0, 1 | what the last crawl found; -1 before the first |
    | probed | -1, 0, 1 | what the last probe since then found; -1 none; with ``probe=True`` |
    | importance | [0, 1e6] | mu, saturated |
    | complete | 0, 1 | whether every change is signalled, and nothing else |
    | change_rate | [0, 1e6] | Delta; with ``reveal="parameters"`` |
    | recall | [0, 1] | with ``reveal="parameters"`` |
    | false_signal_rate | [0, 1e6] | nu; with ``reveal="parameters"`` |

    Exact values are in ``env.unwrapped.tracker()``. Every crawl of the last epoch (page, time,
    changed or not) and every signal is in ``env.unwrapped.last_log()``: that is all that a policy
    that learns may use.

    ## Rewards

    Minus the importance-weighted mean of C(n), averaged over the step, which is <= 0; with
    ``reward="freshness"`` the importance-weighted share of pages that is fresh. The paper's J, a
    sum over pages, is ``env.unwrapped.ledger().cost``. ``crawl_cost`` is taken off per crawl. The
    parts are in ``info["reward_terms"]``. ``info["crawls"]`` is what was really spent in the step;
    with ``rates`` there are ``info["declared"]``, the crawls per unit of time that the action was
    expected to spend, and ``info["denied"]``, those that an empty bucket prevented. No requests
    are played: importance is a weight.

    ## Starting State

    At time 0 every page is fresh, with no signals. The first decision about rates is at time 0;
    that about a page is at the first crawl, time 1 / R.

    ## Episode End

    Truncated after the last epoch that ends within the horizon, or the last slot that begins
    within it; never terminated.

    ## Arguments

    - ``num_pages`` (100), ``bandwidth_steps`` (()), ``horizon`` (30.0), ``delay`` (None),
      ``num_sources`` (None), ``resample`` (False), ``render_mode`` (None): as in ``CrawlNCIS-v0``.
    - ``bandwidth`` (None): crawls per unit of time, R; by default 0.2 for every page, as in the
      paper's experiments, and 100 with the instances of ``CrawlNCIS-v0``.
    - ``instance`` ("mixed"): one of ``crawl_envs.instances.names()``, or the path of an imported
      table of URLs, which ends in ``.parquet``.
    - ``action`` ("rates"): the action form. With ``rates``: ``epoch`` (1.0), the length of an
      epoch; ``overspend`` ("scale"); ``bucket`` (None), the crawls that a bucket of tokens can
      hold, which starts full and is refilled at the bandwidth. With others: ``batch`` (1),
      ``probe`` (False).
    - ``objective`` ("harmonic"): or ``binary``, 1 for any number of changes but 0, or a table C(0),
      C(1), ..., C(K) that starts at 0 and is concave.
    - ``reward`` (None): ``penalty`` or ``freshness``; ``crawl_cost`` (0.0).
    - ``reveal`` ("parameters"): with ``"importance"`` change rates are hidden.

    ## Version History

    - v0: first version.
    """

    def __init__(
        self,
        *,
        num_pages: int = 100,
        bandwidth: float | None = None,
        bandwidth_steps: Sequence[Sequence[float]] = (),
        horizon: float = 30.0,
        instance: str = "mixed",
        action: Literal["rates", "page", "scores", "refresh"] = "rates",
        epoch: float | None = None,
        overspend: Overspend | None = None,
        bucket: float | None = None,
        batch: int | None = None,
        probe: bool | None = None,
        objective: Penalty = "harmonic",
        reward: HarmonicReward | None = None,
        crawl_cost: float = 0.0,
        reveal: Literal["parameters", "importance"] = "parameters",
        delay: Mapping[str, Any] | None = None,
        num_sources: int | None = None,
        resample: bool = False,
        render_mode: RenderMode | None = None,
    ) -> None:
        if reward not in (None, *REWARDS):
            raise ValueError(f"reward must be one of {REWARDS} or None, got {reward!r}")
        generator = generator_of(
            instance,
            num_pages=num_pages,
            bandwidth=bandwidth,
            bandwidth_steps=bandwidth_steps,
            delay=delay,
            num_sources=num_sources,
        )
        epochs = {"epoch": epoch, "overspend": overspend, "bucket": bucket}
        slots = {"batch": batch, "probe": probe}
        self.make_lanes = partial(
            _deciding(action, generator, epochs, slots),
            generator=generator,
            horizon=horizon,
            reveal=reveal,
            resample=resample,
            penalty=objective,
            requests=False,
            show_complete=True,
        )
        paid = Objective(reward or "penalty", crawl_cost)
        super().__init__(self.make_lanes(1), paid, render_mode=render_mode)


class CrawlHarmonicVector(FamilyVectorEnv, NativeVectorEnv):
    """``num_envs`` lanes of :class:`CrawlHarmonic` that step together, with the same arguments.

    Besides: those of :class:`FamilyVectorEnv`.
    """

    single = CrawlHarmonic
