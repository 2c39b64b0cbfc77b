"""Convert FedScale's availability trace to a table for availability=trace: the active intervals of each client.

    python benchmarks/fedscale_availability.py client_behave_trace ready.parquet
    python train.py availability=trace availability.path=ready.parquet availability.state=state \\
        availability.period=period_s availability.assign=drawn

FedScale (Lai et al., ICML 2022) stores a pickle, {client: {"active": [s, ...], "inactive": [s, ...],
"finish_time": s, ...}}. A client is active at time t if active[k] <= t mod finish_time <= inactive[k] for some k. Each
client thus has its own period, `finish_time`, and later times are never reached. Adjacent intervals are merged. A
client that is never active has one row of state 0. Pickles that contain more than plain data are rejected
(`fedscale_devices.py`).
"""

import itertools
import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa

from fedscale_devices import InvalidFile, convert, is_not_negative

COLUMNS = ("client", "start_s", "end_s", "state", "period_s")
Row = tuple[int, float, float, int, float]


def make_table(behaviour: object) -> pa.Table:
    """Return the rows of all clients.

    Raises:
        InvalidFile: a client or its trace is invalid.
    """
    if not isinstance(behaviour, dict) or not behaviour:
        raise InvalidFile(f"expected a dictionary of clients, got a {type(behaviour).__name__}")
    if any(isinstance(client, bool) or not isinstance(client, int) for client in behaviour):
        raise InvalidFile("client identifiers must be integers")
    rows = itertools.chain.from_iterable(make_rows(client, behaviour[client]) for client in sorted(behaviour))
    return pa.table(dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))


def make_rows(client: int, trace: object) -> Iterator[Row]:
    """Yield the disjoint active intervals of one client in order; one row of state 0 if it has none."""
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
    """Return the seconds at which the client becomes active and inactive, and its period in seconds."""
    facts = trace if isinstance(trace, dict) else {}
    period = facts.get("finish_time")
    if not is_not_negative(period) or period == 0:
        raise InvalidFile(f"client {client}: finish_time must be a number above 0, got {period!r}")
    active, inactive = (read_times(client, name, facts.get(name)) for name in ("active", "inactive"))
    if len(active) != len(inactive):
        raise InvalidFile(f"client {client}: active has {len(active)} times, but inactive has {len(inactive)}")
    return active, inactive, float(period)


def read_times(client: int, name: str, times: object) -> list[float]:
    """Return one list of seconds of a client's trace."""
    if not isinstance(times, list | tuple) or not all(is_not_negative(time_s) for time_s in times):
        raise InvalidFile(f"client {client}: {name} must be a list of seconds of at least 0, got {times!r:.60}")
    return [float(time_s) for time_s in times]


def main(arguments: Sequence[str]) -> int:
    """Convert the pickle of the first argument to the table of the second, and return the exit code."""
    usage = "python benchmarks/fedscale_availability.py client_behave_trace TABLE.parquet"
    message = (
        "{target}: {rows} intervals. Use it with availability=trace availability.path={target} "
        "availability.state=state availability.period=period_s availability.assign=drawn"
    )
    return convert(arguments, usage, make_table, message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
