"""Drive a scheduler by lines of JSON on standard input and output.

================================================================  ==========================
a line of input                                                   the line of output
================================================================  ==========================
``{"add": [{"url": "u", "importance": 2, "change_rate": 0.1}]}``  ``{"pages": 1}``
``{"add": [{"url": "u"}], "known": "skip"}``                      ``{"pages": 1}``
``{"update": [{"url": "u", "change_rate": 0.2}]}``                ``{"pages": 1}``
``{"remove": ["u"]}``                                             ``{"pages": 0}``
``{"move": ["u"], "to": ["v"]}``                                  ``{"pages": 1}``
``{"revive": ["u"]}``                                             ``{"unknown": 0}``
``{"limit": ["host"], "gap": 0.0001, "most": 2}``                 ``{"pages": 1}``
``{"hold": "host", "until": 1.5}``                                ``{"pages": 1}``
``{"signal": ["u"], "time": 1.5, "source": 0}``                   ``{"ignored": 0, ..}``
``{"source_gap": 0, "since": 1.2}``                               ``{"pages": 1}``
``{"report": ["u"], "time": 1.6, "changed": [true]}``             ``{"ignored": 0}``
``{"report": ["u"], "time": 1.6, "ended": 1.7, "cost": 52000}``   ``{"ignored": 0}``
``{"report": ["u"], "time": 1.6, "status": "failed"}``            ``{"ignored": 0}``
``{"next": 10, "time": 1.7}``                                     ``{"fetch": ["u"], ..}``
``{"bandwidth": 500, "time": 2}``                                 ``{"bandwidth": 500}``
``{"audit_share": 0.01}``                                         ``{"audit_share": 0.01}``
``{"reset_clock": 1.4}``                                          ``{"clock": 1.4}``
``{"ask": "u", "time": 1.7}``                                     ``{"url": "u", "fetch": ..}``
``{"due": "u"}``                                                  ``{"url": "u", "due": true, ..}``
``{"describe": "u"}``                                             ``{"url": "u", "state": ..}``
``{"freshness": {"since": 1.0, "group": "news"}}``                ``{"estimate": 0.9, ..}``
================================================================  ==========================

``next`` also answers ``ask_again``: the time at which the answer may change, null if that needs a
new page or a report. It answers ``why`` without a page, and ``clock`` if the time was before the
clock, as which it counts. ``ask`` is for programs that hold a page and ask whether to fetch it now
(:meth:`policies.live.scheduler.CrawlScheduler.ask`); it adds a new page if its columns are learned
or the policy needs none. ``due`` changes nothing. It answers whether the page is due, ``why``, the
probability that its copy is ``stale``, and ``next``, the date at which it is due if nothing
happens, null for never. ``signal`` answers ``unknown``, the urls of unknown pages.

``freshness`` answers what audits measured, :class:`policies.estimators.MeasuredFreshness`; all its
names may be left out. An audit counts as ``missed`` if it is reported without ``changed``. Another
``audit_share`` keeps the audits before. A number that is not finite is answered as null.

``cost`` in ``report`` is what the fetches cost, such as their bytes, one number or a list; in
``add`` and ``update`` it is what a fetch of the page is expected to cost. ``bandwidth`` is then
cost per day. ``most_interval``, null for none, is the longest time from a copy to the next fetch.

``status`` is ``ok``, ``failed`` (with ``retry_at`` for a Retry-After), ``interrupted`` (nothing is
known of the fetch, as after a crash) or ``gone``. ``limit`` with null is for all hosts. ``hold``
with a past time releases a host. ``revive`` brings back gone pages and ends the waits of failed
ones. Times are days, or dates in ISO 8601 (days since 1970); the default is now. A time of
``next``, ``ask`` or ``bandwidth`` must be at most a day after this machine's clock.
``reset_clock`` takes the scheduler's clock back: with null to now, and at most to a day before this
machine's, except if it is earlier already.

A ``url`` is an id of at most 65,536 bytes: a URL or another text, or all are whole numbers.
Spellings of a URL are one page. Its id is the spelling of the message if that is known, else the
normal form of RFC 3986 without the fragment (:func:`policies.live.urls.normal_url`). Answers have
the id. Pages that are added without a ``host`` have the host of their URL, so that limits count.

A line has at most 16 MiB, and ``next`` and each list at most 10,000 entries: send several. A bad
line is answered by ``{"error": "..."}`` and changes nothing. A name that an object has twice, or a
number that is not finite, is an error.
"""

from __future__ import annotations

import json
import logging
import math
import time as clocks
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from crawl_envs.types.arguments import one_of, whole
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from policies.live.scheduler.ids import as_array
from policies.live.urls import host_of, normal_url

SECONDS_PER_DAY = 86400.0
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_DAYS = 2_900_000.0
"""Largest time in days since 1970; it is shortly before the year 9999, where dates end."""
MAX_BYTES = 16 * 2**20
"""Most bytes of a line, and of the body of a request."""
MAX_PAGES = 10_000
"""Most entries of a list in a message, and most pages of a batch."""
PAGES = {"remove", "revive", "move", "to", "ask", "due", "describe", "signal", "report"}
"""Names in messages whose values are ids of pages."""

MAX_AHEAD = 1.0
"""Most days by which the time of a message may be ahead of the machine's clock."""
START = [-math.inf]
"""A list with the latest start of the machine, in seconds since 1970, that its clocks showed."""
AUDITED = {"freshness_low": "low", "freshness_high": "high", "audits": "audits"}
AUDITED |= {"audits_missed": "missed", "belief_gap": "belief_gap", "belief_off": "is_off"}
"""Names of metrics and stats of audits, with those of what was :func:`measured`."""
PROMISED = "promised", "promised_share", "overdue", "late_fetches", "most_late"
"""Names of metrics and stats of promises, which are those of the scheduler's overview."""
AUDIT_SHARE = 0.01
"""Share of the fetches that are audits, unless another one is set."""
logger = logging.getLogger(__name__)

Scheduler = CrawlScheduler | DurableScheduler
Message = Mapping[str, Any]


def day_of(time: Any) -> float:
    """Convert a number, a date in ISO 8601 (UTC without a zone), or None for now, to days.

    Now never decreases, even if the machine's clock is set back. ValueError for other values.
    """
    if time is None:
        START[0] = max(START[0], datetime.now(UTC).timestamp() - clocks.monotonic())
        return (START[0] + clocks.monotonic()) / SECONDS_PER_DAY
    if isinstance(time, str):
        try:
            moment = datetime.fromisoformat(time)
        except ValueError:
            raise ValueError(f"time must be days or a date in ISO 8601, got {time!r}") from None
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return zoned.timestamp() / SECONDS_PER_DAY
    if isinstance(time, bool) or not isinstance(time, int | float):
        raise ValueError(f"time must be days or a date in ISO 8601, got {time!r:.80}")
    if not abs(time) <= MAX_DAYS:
        expected = f"at most {MAX_DAYS:g}"
        raise ValueError(f"time must be days, {expected}, got {time!r:.80}: perhaps seconds")
    return float(time)


def clock_time(scheduler: Scheduler, message: Message) -> float:
    """Return the time of a message that moves the clock; ValueError if over a day in the future."""
    time, now = day_of(message.get("time")), day_of(None)
    if scheduler.time <= now + MAX_AHEAD < time:
        got = f"got {time:g}; reset_clock takes a scheduler's clock back"
        raise ValueError(f"time must be at most a day after {date_of(now)}, {got}")
    return time


def take_back(scheduler: Scheduler, now: float) -> None:
    """Set a scheduler's clock back to now if it is over a minute ahead, and log a warning."""
    lead = scheduler.time - now
    if lead * SECONDS_PER_DAY > 60.0:
        scheduler.reset_clock(now)
        words = "was ahead of this machine's and is taken back; waits have as long to go as before"
        logger.warning(f"the scheduler's clock {words}: by {lead:.4g} days, to {date_of(now)}")


def answers(scheduler: Scheduler, lines: Iterable[str]) -> Iterator[str]:
    """Yield the answer, a line of JSON, to each line of input that is not blank."""
    for line in lines:
        if line.strip():
            yield json.dumps(answer_line(scheduler, line))


def answer_line(
    scheduler: Scheduler, line: str | bytes, note: Callable[[Message], None] | None = None
) -> Message:
    """Return the answer to a line of JSON; ``note`` is called with the message if it is sound."""
    try:
        message = read_json(line)
        answer = _answer(scheduler, message)
    except KeyError as error:
        return {"error": f"{' or '.join(CALLS.keys() & message.keys())} must have {error}"}
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        return {"error": str(error)}
    if note is not None:
        note(message)
    return answer


def read_json(text: str | bytes) -> Any:
    """Parse a text of JSON; ValueError if it is malformed, too long or has a name twice."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"a line must have at most {MAX_BYTES} bytes: send several")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected a JSON object, but {error}") from None
    except RecursionError as error:
        raise ValueError(f"lists must not be so deep: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(named := dict(pairs)) < len(pairs):
        raise ValueError(f"names must differ, got {[name for name, _ in pairs]!r:.80}")
    return named


def _constant(name: str) -> None:
    raise ValueError(f"numbers must be finite, got {name}")


def _answer(scheduler: Scheduler, message: Any) -> Message:
    """Check a message, make its call of the scheduler, and return the answer."""
    named = [name for name in CALLS if isinstance(message, dict) and name in message]
    if len(named) != 1:
        raise ValueError(f"a line must have one of {', '.join(CALLS)}, got {message!r:.80}")
    [call] = named
    for name in message.keys() - {call}:
        one_of(f"name beside {call}", name, CALLS[call].names)
    if call in ("ask", "due", "describe") and isinstance(message[call], list):
        raise ValueError(f"{call} must be the url of a page, got {message[call]!r:.80}")
    for name, value in message.items():
        size = len(value) if isinstance(value, list) else value if name == "next" else 0
        if isinstance(size, int) and size > MAX_PAGES:
            raise ValueError(f"{name} must be of at most {MAX_PAGES}, got {size}: send several")
    with scheduler.lock:
        ids = {name: _ids_of(scheduler, message[name]) for name in PAGES & message.keys()}
        answer = CALLS[call].make(scheduler, {**message, **ids})
    return {"pages": len(scheduler)} if answer is None else finite(answer)


def _ids_of(scheduler: Scheduler, urls: Any) -> Any:
    """Return the id of each URL: its spelling if that is known, else its normal form."""
    texts = urls if isinstance(urls, list) else [urls]
    if not texts or not all(isinstance(text, str) for text in texts):
        return urls  # whole numbers, or an error of the call
    is_known, _ = scheduler.pages.known(as_array("ids", texts))
    ids = [text if is_known[k] else normal_url(text) for k, text in enumerate(texts)]
    return ids if isinstance(urls, list) else ids[0]


def _add(scheduler: Scheduler, message: Message) -> None:
    urls, columns = _pages(message["add"])
    ids = _ids_of(scheduler, urls)
    hosts = [host_of(page) if isinstance(page, str) else "" for page in ids]
    if "host" not in columns and any(hosts):
        columns["host"] = hosts
        if not all(hosts):
            page = ids[hosts.index("")]
            raise ValueError(f"host must be given where a url has none, got {page!r:.80}")
    scheduler.add(ids, known=message.get("known", "raise"), **columns)


def add_found(scheduler: Scheduler, urls: Sequence[Any], columns: Mapping[str, Any]) -> int:
    """Add new pages, all without a promise and with a warning if not all promises can be kept."""
    hosts = [host_of(str(url)) for url in urls]
    about: Any = {"known": "skip", "host": hosts if any(hosts) else None, **columns}
    try:
        return scheduler.add(urls, **about)
    except ValueError as error:
        added = scheduler.add(urls, **about | {"most_interval": math.inf})
        logger.warning(f"{added} new pages get no promise: {error}")
        return added


def _update(scheduler: Scheduler, message: Message) -> None:
    urls, columns = _pages(message["update"])
    scheduler.update(_ids_of(scheduler, urls), **columns)


def _pages(rows: Any) -> tuple[list[Any], dict[str, list[Any]]]:
    """Split a list of objects with equal names into ids (``url``) and columns by name."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"pages must be a list of objects with a url, got {rows!r:.80}")
    names = set(rows[0]) if rows else {"url"}
    for row in rows:
        if set(row) != names or "url" not in row:
            raise ValueError(f"pages must all have url and the same names, got {sorted(row)!r:.80}")
    columns = {name: [row[name] for row in rows] for name in sorted(names - {"url"})}
    if longest := columns.get("most_interval"):
        columns["most_interval"] = [math.inf if x is None else x for x in longest]
    return [row["url"] for row in rows], columns


def _limit(scheduler: Scheduler, message: Message) -> None:
    scheduler.limit_hosts(message["limit"], gap=message.get("gap"), most=message.get("most"))


def _signal(scheduler: Scheduler, message: Message) -> Message:
    time, last = day_of(message.get("time")), scheduler.num_sources - 1
    source = whole("source", message.get("source", 0), 0, last)  # one, as metrics have its name
    ignored, unknown = scheduler.signal(message["signal"], time, source)
    return {"ignored": ignored, "unknown": unknown.tolist()}


def _describe(scheduler: Scheduler, message: Message) -> Message:
    time, page = message.get("time"), message["describe"]
    facts = scheduler.describe(page, None if time is None else day_of(time))
    return {"url": page} | facts


def _freshness(scheduler: Scheduler, message: Message) -> Message:
    limits = message["freshness"]
    if not isinstance(limits, dict):
        raise ValueError(f"freshness must be an object, as {{}}, got {limits!r:.80}")
    for name in limits:
        one_of("name in freshness", name, ("since", "until", "group"))
    limits = {k: x if k == "group" else day_of(x) for k, x in limits.items() if x is not None}
    return measured(scheduler, **limits)


def measured(scheduler: Scheduler, **limits: Any) -> dict[str, Any]:
    """Return what audits measured as values of JSON; ``limits`` as in freshness."""
    facts = scheduler.freshness(**limits)
    values = {"is_off": facts.is_off, "calibration": facts.calibration.tolist()}
    return dict(finite(facts._asdict() | values))


def finite(values: Any) -> Any:
    """Return values of JSON with None for the numbers that are not finite."""
    return json.loads(json.dumps(values), parse_constant=lambda name: None)


def date_of(day: float) -> str | None:
    """Convert days since 1970 to a date and time in ISO 8601; None if there is no such date."""
    try:
        return (EPOCH + timedelta(days=day)).isoformat(timespec="seconds")
    except OverflowError:
        return None


def _ask(scheduler: Scheduler, message: Message) -> Message:
    time, page = clock_time(scheduler, message), message["ask"]
    if new := page not in scheduler:
        try:
            add_found(scheduler, [page], {})
        except ValueError as error:
            words = f"{page!r:.80} must be added with its columns before: {error}"
            raise ValueError(words) from error
    try:
        fetch = scheduler.ask(time, page)
    except ValueError:
        if new:
            scheduler.remove([page])
        raise
    granted = [] if fetch.id is None else [fetch.id]
    return {"url": page, "fetch": granted, "ask_again": fetch.ask_again}


def _due(scheduler: Scheduler, message: Message) -> Message:
    now, page = day_of(message.get("time")), message["due"]
    answer = {"url": page, "due": True, "known": page in scheduler, "why": "it is not known"}
    if not answer["known"]:
        return {**answer, "stale": None, "next": None}
    facts = scheduler.describe(page, now)
    answer["due"], answer["why"] = facts["due"] <= max(now, scheduler.time), facts["why"]
    return {**answer, "stale": facts["stale"], "next": date_of(facts["due"])}


def _report(scheduler: Scheduler, message: Message) -> Message:
    time, status = day_of(message.get("time")), message.get("status", "ok")
    more = {k: day_of(message[k]) for k in ("retry_at", "ended") if message.get(k) is not None}
    more |= {"cost": cost} if (cost := message.get("cost")) is not None else {}
    changed = message.get("changed")
    return {"ignored": int(scheduler.report(message["report"], time, status, changed, **more))}


def _next(scheduler: Scheduler, message: Message) -> Message:
    time, count = clock_time(scheduler, message), message["next"]
    fetch = scheduler.next_batch(time, count).tolist()
    clock = {"clock": scheduler.time} if time < scheduler.time else {}
    if fetch:
        return {"fetch": fetch, "ask_again": time} | clock
    ask_again = scheduler.next(time).ask_again
    return {"fetch": [], "ask_again": ask_again, "why": scheduler.why()} | clock


def _configure(scheduler: Scheduler, message: Message) -> Message:
    settings = {k: message[k] for k in ("bandwidth", "audit_share") if k in message}
    scheduler.configure(clock_time(scheduler, message), **settings)
    return settings


def _reset_clock(scheduler: Scheduler, message: Message) -> Message:
    time, now = day_of(message["reset_clock"]), day_of(None)
    if time < now - MAX_AHEAD < scheduler.time:
        what = f"at most a day before {date_of(now)}, got {time:g}: every copy would be as old"
        raise ValueError(f"reset_clock must be {what}; null is now")
    scheduler.reset_clock(time)
    return {"clock": scheduler.time}


class Call(NamedTuple):
    """The function that answers a kind of message, and the names that the message may have.

    If the function returns None, the answer is the number of pages.
    """

    make: Callable[[Scheduler, Message], Message | None]
    names: tuple[str, ...] = ("time",)


CALLS = {
    "add": Call(_add, ("known",)),
    "update": Call(_update, ()),
    "remove": Call(lambda pages, message: pages.remove(message["remove"]), ()),
    "move": Call(lambda pages, message: pages.move(message["move"], message["to"]), ("to",)),
    "revive": Call(lambda pages, message: {"unknown": pages.revive(message["revive"])}, ()),
    "reset_clock": Call(_reset_clock, ()),
    "limit": Call(_limit, ("gap", "most")),
    "hold": Call(
        lambda pages, message: pages.hold(message["hold"], day_of(message["until"])), ("until",)
    ),
    "source_gap": Call(
        lambda pages, message: pages.source_gap(message["source_gap"], day_of(message["since"])),
        ("since",),
    ),
    "ask": Call(_ask),
    "due": Call(_due),
    "describe": Call(_describe),
    "freshness": Call(_freshness, ()),
    "signal": Call(_signal, ("time", "source")),
    "report": Call(_report, ("time", "status", "changed", "retry_at", "ended", "cost")),
    "next": Call(_next),
    "bandwidth": Call(_configure),
    "audit_share": Call(_configure),
}
