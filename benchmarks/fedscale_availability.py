"""FedScale's clients as a table for availability=trace: the intervals in which each of them is active.

    python benchmarks/fedscale_availability.py client_behave_trace ready.parquet
    python train.py availability=trace availability.path=ready.parquet availability.state=state \\
        availability.period=period_s availability.assign=drawn

FedScale (Lai et al., ICML 2022) keeps them in a pickle, {client: {"active": [s, ...], "inactive": [s, ...],
"finish_time": s, ...}}: a client is active at t where active[k] <= t mod finish_time <= inactive[k] for a k. So every
client repeats after a time of its own, and what comes after `finish_time` is never reached. Intervals that meet become
one; a client that is never active has a row of state 0. What is unpickled is data alone (`fedscale_devices.py`).
"""

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TypeGuard

import pyarrow as pa

from fedscale_devices import Refused, convert

COLUMNS = ("client", "start_s", "end_s", "state", "period_s")
Row = tuple[int, float, float, int, float]


def make_table(behaviour: object) -> pa.Table:
    """The rows of all clients. Raises `Refused` with the first client whose trace isn't one."""
    if not isinstance(behaviour, dict) or not behaviour:
        raise Refused(f"it holds no clients, but a {type(behaviour).__name__}")
    if any(isinstance(client, bool) or not isinstance(client, int) for client in behaviour):
        raise Refused("its clients must be integers")
    rows = itertools.chain.from_iterable(make_rows(client, behaviour[client]) for client in sorted(behaviour))
    return pa.table(dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))


def make_rows(client: int, trace: object) -> Iterator[Row]:
    """The intervals of one client, in order and apart; one of state 0 where it has none."""
    active, inactive, period = read_trace(client, trace)
    pairs = sorted((a, min(b, period)) for a, b in zip(active, inactive, strict=True) if a < min(b, period))
    if not pairs:
        yield client, 0.0, period, 0, period
        return
    start, end = pairs[0]
    for a, b in pairs[1:]:
        if a > end:
            yield client, start, end, 1, period
            start, end = a, b
        end = max(end, b)
    yield client, start, end, 1, period


def read_trace(client: int, trace: object) -> tuple[list[float], list[float], float]:
    """Seconds at which the client comes and leaves, and its period."""
    facts = trace if isinstance(trace, dict) else {}
    period = facts.get("finish_time")
    if not is_time(period) or period == 0:
        raise Refused(f"client {client} must have a finish_time above 0, it has {period!r}")
    active, inactive = (read_times(client, name, facts.get(name)) for name in ("active", "inactive"))
    if len(active) != len(inactive):
        raise Refused(f"client {client} comes {len(active)} times and leaves {len(inactive)} times")
    return active, inactive, float(period)


def read_times(client: int, name: str, times: object) -> list[float]:
    """The seconds of one list."""
    if not isinstance(times, list | tuple) or not all(is_time(each) for each in times):
        raise Refused(f"client {client} must have a list of seconds in {name}, it has {times!r:.60}")
    return [float(each) for each in times]


def is_time(value: object) -> TypeGuard[float]:
    """Whether the value is a number of at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def main(words: Sequence[str]) -> int:
    """The command: the pickle and the table that it becomes."""
    usage = "python benchmarks/fedscale_availability.py client_behave_trace TABLE.parquet"
    done = (
        "{target}: {rows} intervals; availability=trace availability.path={target} "
        "availability.state=state availability.period=period_s availability.assign=drawn"
    )
    return convert(words, usage, make_table, done)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
