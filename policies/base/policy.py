"""Policies as values: each starts an episode, updates on logs, and chooses pages or rates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias, get_args

import numpy as np

from crawl_envs.types import CrawlLog, FloatArray, Problem, Tracker
from crawl_envs.types.arguments import one_of, quantity, whole
from crawl_envs.types.compiled_policies import Compiled
from crawl_envs.types.copies import Sketches

PageForm: TypeAlias = Literal["page", "scores", "refresh"]
ActionForm: TypeAlias = Literal["page", "scores", "refresh", "rates", "shares"]
PAGE_FORMS: tuple[str, ...] = get_args(PageForm)
"""The forms of action that name pages."""
RATE_FORMS = ("rates", "shares")
"""The forms of action that are crawl rates of an epoch."""


class Form(NamedTuple):
    """The form in which a policy acts.

    Attributes:
        action: ``page``, ``scores``, ``refresh`` or ``rates``. In an environment of ``shares`` a
            policy chooses rates, which are converted.
        batch: pages per decision in the form ``scores``, >= 1.
        epoch: time between two decisions in the form ``rates``; None if there is none, as in a
            rollout at constant rates.
    """

    action: str = "page"
    batch: int = 1
    epoch: float | None = None

    @property
    def num_chosen(self) -> int:
        """Number of pages per decision."""
        return self.batch if self.action == "scores" else 1


class Pages(Protocol):
    """The pages of an episode at its start: a lane of an environment, or live pages."""

    def tracker(self) -> Tracker:
        """Return what is known of the pages now."""

    def last_log(self) -> CrawlLog:
        """Return the crawls and signals that ended at the tracker's time."""

    def rng(self) -> np.random.Generator:
        """Return a new generator for random choices, the same at every call."""

    def num_slots(self, epoch: float | None = None) -> int:
        """Return the number of crawls in the episode, or of epochs of a length."""

    def first_sketch(self) -> Sketches:
        """Return the sketches of all pages at time 0; ValueError if there are none."""


class Policy(ABC):
    """A policy: ``start`` an episode, ``update`` on logs, ``choose`` pages or rates.

    A policy knows no environment. Its constructor keeps the settings. ``start`` sets all state of
    an episode in attributes: lanes have shallow copies, which share what the constructor made.
    :class:`policies.base.bound.Bound` plays a policy in an environment. Without one, call in turns:

    * ``start(pages)`` once per episode;
    * ``choose(tracker)`` once per decision;
    * ``update(log, tracker)`` before each later ``choose``, with the crawls and signals since.
    """

    acts: ClassVar[tuple[str, ...]] = PAGE_FORMS
    """The supported forms of action; none if the policy can only be simulated."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Fields of :class:`crawl_envs.types.Problem` that must be revealed."""
    oracle: bool = False
    """Whether the policy reads the true events, which the tracker does not contain."""
    learns: ClassVar[bool] = False
    """Whether the policy learns from the results of its crawls."""
    methods: tuple[str, ...] = ()
    """Methods that the pages must have in addition to those of :class:`Pages`."""
    reads_log: bool = True
    """Whether the policy needs ``update``. If not, the log, which is slow to read, is not read."""
    reads_columns: bool = False
    """Whether :class:`policies.base.columns.FromColumns` can play the policy."""
    uses_signals: ClassVar[bool] = False
    """Whether the choice depends on signals."""
    reads_observation: bool = False
    """Whether ``choose`` reads the attribute ``observation``, which a bound policy is given."""
    observation: Any = None
    """The observation of the present decision, or None if it is not read."""
    stream: tuple[int, ...] = (0,)
    """Path of the policy's random stream: numbers of children spawned from the episode's one."""
    form: Form = Form()
    """The form in which the policy acts; see :meth:`in_form`."""
    declared: FloatArray | None = None
    """Estimated change rates, (m,). In the form ``rates`` the environment derives its budget from
    them."""

    @property
    def name(self) -> str:
        """The policy's name in :func:`policies.make`."""
        return type(self).__name__

    def start(self, pages: Pages) -> None:  # noqa: B027  (optional)
        """Begin an episode, maybe midway, and drop what was learned in earlier ones.

        ``pages.last_log()`` has the events up to this first decision if the episode has just begun.
        Midway it has only the last of them, and the tracker shows the rest. In an environment with
        ``start="crawled"`` the pages are those at the first crawl of the round, and ``update`` then
        reads the round in order, without a ``choose``.

        Raises:
            ValueError: the pages lack what the policy needs.
        """

    def update(self, log: CrawlLog, tracker: Tracker) -> None:  # noqa: B027  (optional)
        """Learn from the crawls and signals since the last decision, up to ``tracker``."""

    def follow(self, tracker: Tracker) -> None:  # noqa: B027  (optional)
        """Read a tracker at a decision for which no log is given."""

    @abstractmethod
    def choose(self, tracker: Tracker) -> Any:
        """Return the pages to crawl, best first, distinct; in the form ``rates``, an action."""

    def check(self) -> None:
        """Raise ValueError where the settings do not suit the form of action."""
        if self.acts:
            one_of(f"action_form of {self.name}", self.form.action, self.acts)

    def in_form(
        self, action: str = "page", batch: int | None = None, epoch: float | None = None
    ) -> Self:
        """Return the policy in another form of action.

        Args:
            action: one of ``acts``.
            batch: pages per decision in the form ``scores``, >= 1; None for 1.
            epoch: time between two decisions in the forms ``rates`` and ``shares``, > 0.

        Raises:
            ValueError: an argument out of its range, or a form that the settings do not suit.
        """
        if self.acts:
            one_of(f"action_form of {self.name}", action, self.acts)
        policy, count = copy(self), 1 if batch is None else whole("batch", batch, 1)
        length = None if epoch is None else quantity("epoch", epoch, above=0.0)
        policy.form = Form("rates" if action == "shares" else action, count, length)
        policy.check()
        return policy

    def num_chosen(self, tracker: Tracker) -> int:
        """Return the number of pages to choose: all, best first, for a batch with costs."""
        paid = self.form.action == "scores" and tracker.problem.cost is not None
        return tracker.elapsed.size if paid else self.form.num_chosen

    def require(self, problem: Problem) -> None:
        """Raise ValueError where the problem does not reveal a parameter that the policy needs."""
        missing = [name for name in self.needs if getattr(problem, name) is None]
        if missing:
            raise ValueError(
                f"{self.name} needs {', '.join(missing)}, which the environment does not reveal; "
                "make it with reveal='parameters'"
            )

    def check_pages(self, tracker: Tracker, num_pages: int) -> None:
        """Raise ValueError where a tracker has another number of pages than the start."""
        if tracker.elapsed.size != num_pages:
            raise ValueError(
                f"tracker must have the {num_pages} pages that {self.name} started with, got "
                f"{tracker.elapsed.size}"
            )

    def own_rng(self, pages: Pages) -> np.random.Generator:
        """Return a new generator of the policy's random stream, the same in every call."""
        rng = pages.rng()
        for number in self.stream:
            rng = rng.spawn(number + 1)[number]
        return rng


class CrawlPolicy(Policy):
    """A policy that compiled code can play: the problem determines its whole episode."""

    @abstractmethod
    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """Return the compiled form for ``problem`` and ``slots`` crawls; ``rng`` decides at random.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """
