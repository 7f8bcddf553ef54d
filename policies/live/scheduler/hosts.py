"""The limits of a scheduler's hosts."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import ready
from crawl_envs.types.arguments import quantity, real, whole
from policies.live.scheduler.pacing import PacedScheduler
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.reading import host_labels
from policies.live.scheduler.reports import reopen
from policies.live.scheduler.states import NO_LIMIT


class Hosts(PacedScheduler):
    """The calls that limit and hold hosts."""

    pages: PageTables

    def limit_hosts(
        self,
        hosts: ArrayLike | None = None,
        *,
        gap: float | None = None,
        most: float | None = None,
    ) -> None:
        """Limit the fetches of hosts; a limit that is not given stays.

        When a host opens, all its pages are compared again that came before their turn, so a host
        with many more good pages than fetches costs time in proportion to them.

        Args:
            hosts: labels of hosts; None for all, and for hosts to come.
            gap: least time from the end of a fetch of a host, and from its start, to the next.
            most: most fetches of a host at once; ``inf`` for no limit, but one where there is a
                gap.

        Raises:
            ValueError: a limit is out of its range.
        """
        pages, limits = self.pages, {}
        if gap is not None:
            limits["gap"] = quantity("gap", gap)
        if most is not None:
            limits["most"] = NO_LIMIT if most == math.inf else min(whole("most", most, 1), NO_LIMIT)
        codes: Any = slice(None)
        if hosts is None:
            pages.host_limits |= limits
        else:
            codes = pages.host_codes(host_labels("hosts", hosts))
        for name, limit in limits.items():
            getattr(pages.choices, name)[codes] = limit
        ready(reopen)(pages.arguments[0])

    def hold(self, host: ArrayLike, until: float) -> None:
        """Ask a host, or some, not before a time, in place of an earlier one; ``inf`` for never."""
        until = until if until == math.inf else real("until", until)
        codes = self.pages.host_codes(host_labels("host", host))
        self.pages.choices.held[codes] = until
        ready(reopen)(self.pages.arguments[0])

    def opens(self, host: str) -> float:
        """Return the time from which a host may be asked, by its gap and :meth:`hold`; or -inf."""
        code, choices = self.pages.hosts.get(host), self.pages.choices
        return -math.inf if code is None else float(max(choices.opens[code], choices.held[code]))
