"""A batch of lanes that step together: actions, observations, trackers and ledgers.

This is the environment without Gymnasium's API, which the vector and single classes add. Pages of
fragments and offers are subclasses: they draw other events and show other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Space
from numpy.typing import ArrayLike

from crawl_envs.sim.advance import DONE, UNFINISHED
from crawl_envs.sim.clock import clock_rows, slot_times
from crawl_envs.sim.divergence import Penalty, penalty_increments
from crawl_envs.sim.law import CustomEvents, check_events
from crawl_envs.sim.rollouts.first_round import Round, draw_crawls
from crawl_envs.sim.state import CRAWLS, DECLARED, DENIED, HITS, LANE, REQUESTS
from crawl_envs.sim.streams import PageSets
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.world import World
from crawl_envs.spaces.actions import ActionForm, Actions, CrawlRates
from crawl_envs.spaces.observations import (
    RATE_CAP,
    Buffers,
    ObservationForm,
    feature_names,
    observation_space,
    write_parameters,
)
from crawl_envs.types import (
    BoolArray,
    CrawlLog,
    FloatArray,
    Instance,
    IntArray,
    Ledger,
    Problem,
    Reveal,
    Tracker,
)
from crawl_envs.types.arguments import flag, one_of, quantity, whole
from crawl_envs.worlds.budgets import Overspend, RateBudget
from crawl_envs.worlds.episodes import Episodes, InstanceGenerator, Plan, Start
from crawl_envs.worlds.first_round import FirstRound
from crawl_envs.worlds.step import (
    play_lanes,
    play_lanes_at_rates,
    restart_lanes,
    step_lanes,
    step_rates,
)

Reported: TypeAlias = tuple[tuple[str, int], ...]
"""Names of entries of a step's info, each with its row of the outcomes."""

LANE_BYTES = np.dtype((np.void, LANE.itemsize))
MAX_LANES = 1_000_000
"""Largest number of lanes."""


class Lanes(Episodes):
    """N independent lanes of m pages that step together.

    Args:
        num_lanes: number of lanes, N.
        generator: generator of the instance of a lane at every seeded reset.
        form: action form.
        horizon: length of an episode, in the instance's unit of time, > 0.
        reveal: known part of the instance, ``parameters`` or ``importance``.
        reveal_cost: whether costs are known before crawls; otherwise each crawl shows its cost.
        resample: draw a new instance at every reset, not only at seeded ones.
        pages: stream of the seeds: ``train`` and ``test`` have no instance in common.
        start: of :class:`crawl_envs.worlds.episodes.Episodes`.
        tape: a recorded tape for all lanes; None draws one per lane.
        penalty: penalty of undetected changes: ``harmonic``, ``binary`` or a table (see
            :func:`crawl_envs.sim.divergence.penalty_increments`); None counts no penalty.
        requests: whether requests are simulated; otherwise importance is a weight.
        show_complete: whether observations show complete observation of pages.
        epoch: length of an epoch, > 0: the first decision is at time 0, the k-th at time k * epoch.
            None for decisions at crawls.
        overspend, bucket: of :class:`crawl_envs.worlds.budgets.RateBudget`, for ``rates``.
        observed: whether observations are written.
        observation: form of observations.
        **layout: further fields of :class:`crawl_envs.sim.world.Layout`.

    Attributes:
        world: the world that holds the arrays of the lanes.
        features: names of the columns of an observation.
        finished: records of the lanes, (N,), at the end of their previous episode.

    Raises:
        ValueError: an argument outside its range.
    """

    _ATTRIBUTES = (*Episodes._ATTRIBUTES, "finished")
    _SAVED: tuple[str, ...] = ("kind", "world", "budget")

    def __init__(
        self,
        num_lanes: int,
        generator: InstanceGenerator,
        form: ActionForm,
        *,
        horizon: float,
        reveal: Reveal = "parameters",
        reveal_cost: bool = True,
        resample: bool = False,
        pages: PageSets = "any",
        start: Start = "fresh",
        tape: Tape | None = None,
        penalty: Penalty | None = None,
        requests: bool = True,
        show_complete: bool = False,
        epoch: float | None = None,
        overspend: Overspend = "scale",
        bucket: float | None = None,
        observed: bool = True,
        observation: ObservationForm = "table",
        **layout: Any,
    ) -> None:
        num_lanes, num_pages = whole("num_envs", num_lanes, 1, MAX_LANES), generator.num_pages
        horizon, resample = quantity("horizon", horizon, above=0.0), flag("resample", resample)
        self.form, self.reveal, self.tape = form, reveal, tape
        self.penalty = penalty
        self._generator = generator
        self.num_sources: int = getattr(generator, "num_sources", 1)
        self.costs = getattr(generator, "least_cost", None) is not None
        self.reveal_cost = flag("reveal_cost", reveal_cost)
        if not reveal_cost and (not self.costs or form.name not in ("page", "refresh")):
            where = f"with action {form.name!r}, got False; use action 'page'"
            where = where if self.costs else "without costs, got False; use cost_spread > 0"
            raise ValueError(f"reveal_cost must be True {where}")
        epoch = None if epoch is None else quantity("epoch", epoch, above=0.0)
        self.budget: RateBudget | None = None
        if isinstance(form, CrawlRates):
            assert epoch is not None
            limits = overspend, bucket, self.costs
            self.budget = RateBudget(num_lanes, num_pages, epoch, reveal, *limits)
        one_of("observation", observation, ObservationForm)
        self.pages = one_of("pages", pages, PageSets)
        self.observation_form = observation
        self.features = self._columns(show_complete)
        world = World(
            num_lanes,
            num_pages,
            horizon=horizon,
            batch=form.batch if epoch is None else 1,
            epoch=epoch,
            requests=requests,
            bucket=np.inf if bucket is None else bucket,
            num_sources=self.num_sources,
            num_features=len(self.features) * observed,
            crawls_per_slot=form.max_pages,
            increments=None if penalty is None else penalty_increments(penalty),
            tape=tape,
            mortal=self.mortal,
            payment=form.payment,
            costs=self.costs,
            **{"at_random": self.budget is not None, **layout},
        )
        super().__init__(world, generator, horizon, resample, start)
        world.state.lanes["max_elapsed"] = horizon + self._longest_round()
        self._buffers, self.finished = Buffers(), np.zeros_like(world.state.lanes)

    def _longest_round(self) -> float:
        """Return the time of a round of crawls of all pages at the generator's bandwidth."""
        bandwidth = getattr(self._generator, "bandwidth", None)
        if self.start == "fresh" or bandwidth is None:
            return 0.0
        before = getattr(self._generator, "before", None)
        return float(before or self.num_pages / bandwidth + (self.epoch or 0.0))

    @property
    def reported(self) -> Reported:
        """Return the names of a step's info besides the reward, each with its row of outcomes."""
        if self.budget is not None:
            return (("crawls", CRAWLS), ("denied", DENIED), ("declared", DECLARED))
        if self.world.requests:
            return (("requests", REQUESTS), ("hits", HITS))
        return (("crawls", CRAWLS),)

    def _columns(self, complete: bool) -> tuple[str, ...]:
        """Return the names of an observation's columns; ``complete`` adds a column of that name."""
        columns = {"complete": complete, "costs": self.costs}
        return feature_names(self.reveal, self.mortal, self.num_sources, **columns)

    @property
    def mortal(self) -> bool:
        """Whether pages are born and die: there is a ``tape``, or the generator says so."""
        return self.tape is not None or getattr(self._generator, "mortal", False)

    @property
    def crawls_at_random(self) -> bool:
        """Whether pages can be crawled at random instants, at rates."""
        return self.world.lengths["Q"] > 0

    # Episodes

    def alive_at_start(self, instance: Instance) -> BoolArray:
        """Return the mask of the pages of an instance that exist at time 0 of its world, (m,)."""
        return super().alive_at_start(instance) if self.tape is None else self.tape.alive

    def begin(
        self,
        lane_mask: BoolArray,
        seeds: Sequence[int | None],
        instances: Sequence[Instance | None],
        fallback: np.random.Generator | None = None,
        *,
        play: bool = True,
    ) -> None:
        """Start an episode in the lanes of ``lane_mask``, (N,), and play to its first decision.

        A seed restarts a lane's streams and draws its instance; without a seed its streams
        continue. A given instance stays until the next seed. ``fallback`` draws the seeds of lanes
        that never had one. Without ``play`` the lanes stay at time 0, for rollouts.

        Raises:
            ValueError: an instance that does not fit; nothing is changed in this case.
        """
        plans = []
        for lane in lane_mask.nonzero()[0].tolist():
            seed = seeds[lane]
            if seed is None and self._roots[lane] is None and fallback is not None:
                seed = int(fallback.integers(2**63))
            plans.append(self._plan(lane, seed, instances[lane]))
        self._keep_totals(lane_mask)
        for plan in plans:
            self._prepare(plan)
        self._restart(lane_mask, play)

    def begin_next(self, lane_mask: BoolArray) -> None:
        """Start the next episode of the lanes in ``lane_mask``, (N,), which have had an episode."""
        if self.resample:
            nothing = [None] * self.num_lanes
            self.begin(lane_mask, nothing, nothing)
            return
        self._keep_totals(lane_mask)
        self.world.state.lanes["episode"][lane_mask] += np.uint64(1)
        self._restart(lane_mask)

    def _keep_totals(self, lane_mask: BoolArray) -> None:
        """Copy the records of the lanes in ``lane_mask`` to ``finished``, as bytes, for speed."""
        records = self.world.state.lanes.view(LANE_BYTES)
        self.finished.view(LANE_BYTES)[lane_mask] = records[lane_mask]

    def _check(self, instance: Instance) -> None:
        super()._check(instance)
        if instance.cost is not None and not self.costs:
            raise ValueError(
                "instance must have no costs like the environment, got costs from "
                f"{instance.cost.min():g} to {instance.cost.max():g}; environments have costs with "
                "cost_spread > 0, except CrawlOffers-v1"
            )
        self._check_events(instance)
        if self.budget is not None:
            self.budget.check(instance)

    def _check_events(self, instance: Instance) -> None:
        """Raise ValueError if an episode of an instance would have too many events."""
        end = self.origin_of(instance) + self.horizon
        check_events(instance, end, self.world.requests, self.tape)

    def _prepare(self, plan: Plan) -> None:
        super()._prepare(plan)
        observation = self.world.observations[plan.lane]
        if plan.instance is not None and observation.size:
            write_parameters(observation, plan.instance, self.features)

    def _restart(self, lane_mask: BoolArray, play: bool = True) -> None:
        for lane in lane_mask.nonzero()[0].tolist():
            if self.budget is not None:
                self.budget.start(lane, self.instance(lane))
            self._provide_events(lane)
        if not self.reveal_cost and self.world.observations[0].size:
            self.world.state.observations[lane_mask, self.features.index("cost")] = 1.0
        restart_lanes(self.world.table, lane_mask)
        self.steps_left = 0  # an interrupted lane needs a reset
        if not play:
            return
        if self.start == "crawled":
            self.world.state.lanes["idle"][lane_mask] = False
            for lane in lane_mask.nonzero()[0].tolist():
                FirstRound(self, lane).play_at_once()
                if self.budget is not None:
                    self.budget.count_signals(self.world.state, [lane])
        self.finish()
        if self.start == "crawled":
            self.note_crawls()
        self._start(lane_mask)

    def first_round(self, lane: int) -> Round:
        """Return the crawls before the episode of a lane that has restarted.

        At rates, the pages of time 0 are crawled at random instants, at equal rates that spend the
        bandwidth. Otherwise each is crawled in order, when it is paid.
        """
        world, instance = self.world, self.instance(lane)
        pages, spend = self.first_pages(instance)
        ends = slot_times(world.state.clock[lane], np.arange(self.lead_of(instance) + 1.0))
        if self.crawls_at_random and self.budget is not None and pages.size > 0:
            rates = np.zeros(self.num_pages)
            rates[pages] = instance.bandwidth / spend[-1]
            return Round(*draw_crawls(world.table, lane, rates, ends[-1]), ends)
        times = slot_times(clock_rows(instance.bandwidth), spend)
        return Round(
            pages, times, ends if self.epoch else np.append(times, self.origin_of(instance))
        )

    def begin_as(self, lanes: Lanes, lane: int) -> None:
        """Restart the only lane at time 0 of the present episode of a lane of another batch."""
        record, roots = lanes.world.state.lanes[lane], lanes._roots[lane]
        assert roots is not None
        self._prepare(Plan(0, roots, int(record["episode"]), lanes.instance(lane), True))
        self._restart(np.ones(1, np.bool_), play=False)
        self.episodes[0] = lanes.episodes[lane]

    def _provide_events(self, lane: int) -> None:
        """Provide the events of a lane's next episode, unless they are drawn during play."""
        instance = self.instance(lane)
        if isinstance(instance, CustomEvents):
            end = self.origin_of(instance) + self.horizon
            self.world.set_tape(lane, instance.draw_tape(self.rng(lane, "root"), end))

    # Steps

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Take decoded actions and play all lanes that have not ended to their next decision.

        Returns the slot's outcomes: NUM_OUTCOMES rows of (N,), 0 for ended lanes. The next call
        overwrites them.

        Raises:
            ValueError: an invalid action; nothing is changed in this case.
            gymnasium.error.ResetNeeded: a lane has had no episode yet.
        """
        if self.steps_left == 0:
            raise ResetNeeded("call reset before step")
        if self.budget is not None:
            self._play_at_rates(self.budget, actions[0])
        else:
            pages, counts = actions
            status = step_lanes(self.world.table, pages, counts)
            if status == UNFINISHED:
                self._finish(status, play_lanes)
            elif status != DONE:
                raise ValueError(
                    f"action must be a page in [0, {self.num_pages}), got {pages[status, 0]} "
                    f"in lane {status}"
                )
        self.note_crawls()
        return self.world.outcomes

    def note_crawls(self) -> None:
        """Write the costs of the last crawls into the observations, if only crawls show them."""
        if self.reveal_cost or not self.world.observations[0].size:
            return
        state, row = self.world.state, self.features.index("cost")
        places = np.arange(state.crawl_log.shape[1])
        lane, place = np.nonzero(places < state.lanes["slot_crawls"][:, None])
        page = state.crawl_log["page"][lane, place]
        state.observations[lane, row, page] = np.minimum(state.cost[lane, page], RATE_CAP)

    def _play_at_rates(self, budget: RateBudget, wanted: FloatArray) -> None:
        """Crawl for an epoch at rates ``wanted``, (N, m), which are first cut to the budget."""
        lanes = self.world.state.lanes
        if self.any_ended:
            wanted = np.where(self.ended[:, None], 0.0, wanted)
        limits = budget.steady.copy()
        for lane in np.flatnonzero(np.isnan(limits)).tolist():
            limits[lane] = budget.bandwidth(self.instance(lane), int(lanes["slot"][lane]))
        if self.form.of_bandwidth:
            rates = wanted * limits[:, None]
            rates = rates if budget.cost is None else rates / budget.cost
            wanted = np.where(budget.complete, wanted, rates)
        action, declared = budget.allowed(wanted, limits, lanes["time"])
        rates = np.where(budget.complete, 0.0, action)
        chances = np.where(budget.complete, action, 0.0)
        status = step_rates(self.world.table, rates, chances, limits)
        self._finish(status, play_lanes_at_rates)
        self.world.outcomes[DECLARED][:] = declared
        budget.count_signals(self.world.state, map(int, np.flatnonzero(~lanes["idle"])))

    def _finish(self, status: int, play: Callable[[IntArray], int]) -> None:
        """Call ``play`` until all lanes are at their decision; ``status`` is that of the last call.

        If it is interrupted, the lanes need a reset.
        """
        steps_left, self.steps_left = self.steps_left, 0
        while status == UNFINISHED:
            self.supply()
            status = play(self.world.table)
        self.steps_left = steps_left

    def finish(self) -> None:
        """Play all lanes to their decision."""
        player = play_lanes_at_rates if self.crawls_at_random else play_lanes
        self._finish(player(self.world.table), player)

    def supply(self) -> None:
        """Enlarge full logs; subclasses also provide more events to lanes that wait for them."""
        self.world.grow_logs()

    # Observations

    def observation_space(self) -> Space[Any]:
        """Return the Gymnasium space of the observations of one lane."""
        max_elapsed = float(self.world.state.lanes["max_elapsed"][0])
        size = (self.features, self.num_pages, max_elapsed)
        return observation_space(*size, self.observation_form)

    def observations(self, copy: bool = True) -> Any:
        """Return the observations of all lanes in their form, as arrays (N, ...).

        Without ``copy`` they are read-only and the next step overwrites them, unless they are flat.
        """
        observations = self.world.state.observations
        if "flat" in self.observation_form:
            rows = self._buffers.copy(observations.transpose(0, 2, 1)).reshape(self.num_lanes, -1)
        else:
            rows = self._buffers.copy(observations) if copy else self.world.read_only
            rows = rows.transpose(0, 2, 1)
        return self._with_mask(rows, slice(None)) if "dict" in self.observation_form else rows

    def observation(self, lane: int) -> Any:
        """Return the observation of a lane in its form, as new arrays."""
        if self.observation_form == "table":
            return self.world.observations[lane].copy().T
        rows = self.world.observations[lane].T.copy()
        if "flat" in self.observation_form:
            rows = rows.reshape(-1)
        return self._with_mask(rows, lane) if "dict" in self.observation_form else rows

    def _with_mask(self, rows: Any, lanes: int | slice) -> dict[str, Any]:
        return {"action_mask": self.action_masks()[lanes].astype(np.int8), "observation": rows}

    def action_masks(self) -> BoolArray:
        """Return the mask of existing pages, which may be chosen, (N, m) bool, a new array."""
        alive: BoolArray = self.world.state.pages["alive"]
        return alive.copy()

    def choice_masks(self) -> BoolArray:
        """Return masks of choices for learners, (N, m), or (N, 2 m) for the bits of ``refresh``."""
        masks = self.action_masks()
        if self.form.name != "refresh":
            return masks
        return np.stack([np.ones_like(masks), masks], axis=-1).reshape(self.num_lanes, -1)

    def tracker(self, lane: int) -> Tracker:
        """Return what the tracker of a lane knows now, in new arrays."""
        state, problem = self.world.state, self.problem(lane)
        pages, now = state.pages[lane], float(state.lanes[lane]["time"])
        alive = pages["alive"].copy()
        return Tracker(
            problem=problem,
            episode=int(self.episodes[lane]),
            time=now,
            elapsed=np.where(alive, now - state.last_crawl[lane], 0.0),
            signals=self.world.signals(lane),
            changed=pages["changed"].copy(),
            alive=alive,
        )

    def last_log(self, lane: int) -> CrawlLog:
        """Return the crawls and signals of the last step, or reset, of a lane."""
        return self.world.log(lane)

    # Truth

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Declare estimated change rates; see :meth:`RateBudget.declare`.

        Raises:
            ValueError: actions are not rates, not one finite number >= 0 per page, no such lane.
        """
        if self.budget is None:
            raise ValueError(f"declare is for actions 'rates', got actions {self.form.name!r}")
        self.budget.declare(change_rate, lane)

    def problem(self, lane: int) -> Problem:
        """Return what policies may know of a lane's instance."""
        return self.instance(lane).problem(self.reveal, self.reveal_cost)

    def fresh(self, lane: int) -> BoolArray:
        """Return the mask of pages with a current copy, (m,) bool."""
        current: BoolArray = self.world.state.pages[lane]["changes"] == 0
        return current

    def similarity(self, lane: int) -> FloatArray:
        """Return 1 for current copies and 0 for stale ones, or 1 minus the penalty, (m,)."""
        if self.penalty is None:
            return self.fresh(lane).astype(np.float64)
        similar: FloatArray = 1.0 - self.world.state.divergence[lane]
        return similar

    def ledger(self, lane: int, finished: bool = False) -> Ledger:
        """Return the totals of a lane's episode so far; if ``finished``, of its last ended one."""
        return self.world.ledger(self._totals_of(lane, finished))

    def _totals_of(self, lane: int, finished: bool) -> Any:
        """Return the record of a lane's current episode, or if ``finished`` its last ended one."""
        self.instance(lane)
        if not self._is_past(lane, finished):
            return self.world.state.lanes[lane]
        if self.finished["time"][lane] == 0.0:
            way_out = "step on until its first one ends, or read the ledgers of other lanes"
            raise ResetNeeded(f"lane {lane} has finished no episode; {way_out}")
        return self.finished[lane]

    def _is_past(self, lane: int, finished: bool) -> bool:
        """Return whether the totals asked for belong to an episode before the current one."""
        return finished and not self.ended[lane]

    # State

    def get_state(self) -> dict[str, Any]:
        """Return a copy of the complete state."""
        attributes = {name: copy(getattr(self, name)) for name in self._ATTRIBUTES}
        world, budget = self.world.get_state(), deepcopy(self.budget)
        return {**attributes, "kind": self._kind(), "world": world, "budget": budget}

    def _kind(self) -> dict[str, Any]:
        """Return the settings that must agree between lanes to share states, by name."""
        tape = self.tape
        return {
            "action": self.form.name,
            "batch": self.form.batch,
            "horizon": self.horizon,
            "pages": self.pages,
            "start": self.start,
            "reveal": self.reveal,
            "costs": self.costs,
            "reveal_cost": self.reveal_cost,
            "objective": None if self.penalty is None else list(self.penalty),
            "epoch": self.epoch,
            "tape": None if tape is None else crc32(tape.code.data, crc32(tape.time.data)),
            "overspend": getattr(self.budget, "overspend", None),
            "bucket": getattr(self.budget, "bucket", None),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state returned by :meth:`get_state` of lanes of the same kind.

        The episodes get new numbers, since the memory of policies belongs to another history.

        Raises:
            ValueError: a state of lanes of another kind; nothing is changed in this case.
        """
        names = {*self._ATTRIBUTES, *self._SAVED}
        if names != set(state):
            raise ValueError(f"state must have {sorted(names)}, got {sorted(map(str, state))}")
        expected = {**self._kind(), "lanes": (self.num_lanes,), "budget": type(self.budget)}
        settings = {**dict(state["kind"]), "lanes": np.shape(state["episodes"])}
        settings["budget"] = type(state["budget"])
        for name, value in expected.items():
            if settings.get(name) != value:
                raise ValueError(
                    f"state must be of lanes like these, with {name} {value!r}, got "
                    f"{settings.get(name)!r}"
                )
        episodes = np.maximum(self.episodes, state["episodes"]) + 1
        self.world.set_state(state["world"])
        for name in self._ATTRIBUTES:
            setattr(self, name, copy(state[name]))
        self.episodes, self.budget = episodes, deepcopy(state["budget"])
