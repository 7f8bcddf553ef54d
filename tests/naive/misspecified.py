"""Slow reference of the tapes of misspecified instances, with the same random draws."""

from __future__ import annotations

from crawl_envs.instances.misspecified import change_laws, signal_laws

REQUEST, CHANGE, SIGNAL, BOTH = range(4)


def poisson(rng, rates, horizon):
    counts = [rng.poisson(rate * horizon) for rate in rates]
    return [(horizon * (1.0 - rng.random()), row) for row, n in enumerate(counts) for _ in range(n)]


def by_pieces(rng, pieces):
    """Draw the changes of (start, end, rate, page) pieces."""
    counts = [rng.poisson(rate * (end - start)) for start, end, rate, _ in pieces]
    return [
        (end - (end - start) * rng.random(), page)
        for (start, end, _, page), n in zip(pieces, counts, strict=True)
        for _ in range(n)
    ]


def with_signals(rng, changes, recall, false_rate, horizon):
    sent = [(t, page, BOTH if rng.random() < recall[page] else CHANGE) for t, page in changes]
    return sent + [(t, page, SIGNAL) for t, page in poisson(rng, false_rate, horizon)]


def plain(revealed, rng, horizon):
    return poisson(rng, revealed.change_rate, horizon)


def bursty(revealed, rng, horizon):
    pages = range(revealed.num_pages)
    burst = [rng.random() < change_laws.BURST_SHARE for _ in pages]
    at_once = change_laws.spells_at_once(horizon)
    quiet = change_laws.BURST_LENGTH * (1.0 - change_laws.BURST_SHARE) / change_laws.BURST_SHARE
    spells = [[] for _ in pages]
    reached = [0.0 for _ in pages]
    while min(reached) < horizon:
        for page in pages:
            base, run = reached[page], 0.0
            for _ in range(at_once):
                run += rng.standard_exponential() * (
                    change_laws.BURST_LENGTH if burst[page] else quiet
                )
                spells[page].append((reached[page], base + run, burst[page]))
                reached[page] = base + run
                burst[page] = not burst[page]
    pieces = []
    for page in pages:
        for start, end, hot in spells[page]:
            factor = change_laws.BURST_FACTOR if hot else change_laws.QUIET_FACTOR
            if start < horizon:
                pieces.append((start, min(end, horizon), revealed.change_rate[page] * factor, page))
    return by_pieces(rng, pieces)


def periodic(revealed, rng, horizon):
    shape, opening = (revealed.law.keywords[name] for name in ("shape", "opening"))
    regular = [page for page in range(revealed.num_pages) if shape[page] > 0.0]
    hourly = [page for page in range(revealed.num_pages) if shape[page] == 0.0]
    return _regular(revealed, rng, horizon, regular, shape) + _hourly(
        revealed, rng, horizon, hourly, opening
    )


def _regular(revealed, rng, horizon, pages, shape):
    scale = [1.0 / (shape[page] * revealed.change_rate[page]) for page in pages]
    left = [1.0 - rng.random() for _ in pages]
    first = [rng.standard_gamma(shape[page] + 1.0) for page in pages]
    times = [[a * b * c] for a, b, c in zip(left, first, scale, strict=True)]
    columns = change_laws.gaps_at_once(revealed.change_rate[pages], horizon)
    while pages and min(own[-1] for own in times) <= horizon:
        for row, page in enumerate(pages):
            base, run = times[row][-1], 0.0
            for _ in range(columns):
                run += rng.standard_gamma(shape[page]) * scale[row]
                times[row].append(base + run)
    return [(t, page) for page, own in zip(pages, times, strict=True) for t in own if t <= horizon]


def _hourly(revealed, rng, horizon, pages, opening):
    pieces = []
    for page in pages:
        day = -1
        while day < horizon:
            start = day + opening[page]
            span = [min(max(t, 0.0), horizon) for t in (start, start + change_laws.WINDOW)]
            pieces.append((*span, revealed.change_rate[page] / change_laws.WINDOW, page))
            day += 1
    return by_pieces(rng, pieces)


def deployed(revealed, rng, horizon):
    host, own_rate, deploy_rate = revealed.law.keywords.values()
    sent = [(t, page, CHANGE) for t, page in poisson(rng, own_rate, horizon)]
    happened = poisson(rng, deploy_rate, horizon)
    share = [rng.beta(*signal_laws.SHARE_BETA) for _ in happened]
    for (t, deployed_host), q in zip(happened, share, strict=True):
        for page in range(revealed.num_pages):
            if host[page] == deployed_host:
                sent.append((t, page, BOTH if rng.random() < q else SIGNAL))
    return sent


def shifting(revealed, rng, horizon):
    habit = revealed.law.keywords["habit"]
    rates = [revealed.change_rate[list(habit).index(each)] for each in range(max(habit) + 1)]
    shifted = poisson(rng, [change_laws.SHIFT_RATE] * len(rates), horizon)
    steps = [[(0.0, rate)] for rate in rates]
    for t, each in shifted:
        steps[each].append((t, rng.random()))
    pieces = []
    for page in range(revealed.num_pages):
        own = sorted(steps[habit[page]])
        ends = [t for t, _ in own[1:]] + [horizon]
        pieces += [(t, end, rate, page) for (t, rate), end in zip(own, ends, strict=True)]
    return by_pieces(rng, pieces)


CHANGES = {
    change_laws.bursty: bursty,
    change_laws.periodic: periodic,
    change_laws.shifting: shifting,
    signal_laws.poisson: plain,
}


def travelled(rng, sent, delay, horizon):
    """Return the changes, and the signals that arrive by the horizon."""
    if delay.kind == "none":
        return sent
    changes = [(t, page, CHANGE) for t, page, kind in sent if kind & CHANGE]
    signals = [(t, page) for t, page, kind in sent if kind & SIGNAL]
    arrivals = []
    for t, page in signals:
        travel = delay.mean
        if delay.kind == "exponential":
            travel = delay.mean * rng.standard_exponential()
        elif delay.kind == "poisson":
            travel = delay.quantum * rng.poisson(delay.mean / delay.quantum)
        arrivals.append((t + travel, page, SIGNAL))
    return changes + [event for event in arrivals if event[0] <= horizon]


def tape(revealed, rng, horizon):
    """Return times and codes of the tape that a misspecified instance draws."""
    law = revealed.law
    if law.func is signal_laws.deploys:
        sent = deployed(revealed, rng, horizon)
    else:
        (pages,) = law.args
        changes = CHANGES[law.func](revealed, rng, horizon)
        sent = with_signals(rng, changes, pages.recall, pages.false_signal_rate, horizon)
    events = travelled(rng, sent, revealed.true_delay, horizon)
    events += [(t, page, REQUEST) for t, page in poisson(rng, revealed.importance, horizon)]
    events.sort(key=lambda event: event[0])
    return [t for t, _, _ in events], [page * 64 + kind for _, page, kind in events]
