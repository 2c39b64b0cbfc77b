"""Convert FLHetBench's cases to tables for device=trace and availability=trace.

    python benchmarks/flhetbench.py devices case2.json training_latency.json ResNet devices.parquet
    python benchmarks/flhetbench.py states case1.json cached_timers.json ready.parquet

    python train.py clients=100 device=trace device.path=devices.parquet device.unit=kbit/s \\
        device.seconds_cv=seconds_cv device.down_cv=link_cv device.up_cv=link_cv device.batch=32 \\
        availability=trace availability.path=ready.parquet availability.state=state availability.period=period_s

FLHetBench (Zhang et al., CVPR 2024) has four cases of devices and four of states, `bench/cached_sample_data`; together
they are its 16 environments. Client k has entry k of a case.

A case of devices is a list of measurements of MobiPerf, {"tcp_speed_results": [kbit/s, ...]}, for both directions.
FLHetBench draws one of the values for each transfer. The table has their mean and relative standard deviation.
`training_latency.json` is a list of phones, {"Phone Model": name, "ResNet Latency": ms, "ResNet STD": ms,
"Vit Latency": ms, ...}. No file says which client has which phone: each client gets one at random, from a fixed seed.
Neither does a file say how many samples a latency is of: set device.batch.

A case of states is a list of keys of `cached_timers.json`, {key: {"isSuccess": bool, "trace_start": s, "trace_end": s,
"ready_time": [[s, s], ...]}}. A client is ready at time t if some [a, b] holds (t - trace_start) mod P + trace_start,
P = int(trace_end - trace_start). Clients without a valid trace are never ready.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fedscale_devices import InvalidFile, is_not_negative

SEED = 0  # of the phones that clients get
USAGE = """usage: python benchmarks/flhetbench.py devices CASE.json training_latency.json ResNet|Vit TABLE.parquet
       python benchmarks/flhetbench.py states CASE.json cached_timers.json TABLE.parquet
"""


def make_devices(case: object, phones: object, network: str) -> pa.Table:
    """Return a row of mean seconds, mean link speed in kbit/s, and their relative deviations, for each client.

    Raises:
        InvalidFile: an entry has no speeds, or no phone has a latency of the network.
    """
    speeds = [_read_speeds(client, entry) for client, entry in enumerate(_read_list("the case", case))]
    latencies = [
        (phone[f"{network} Latency"] / 1000, phone[f"{network} STD"] / phone[f"{network} Latency"])
        for phone in _read_list("training_latency.json", phones)
        if isinstance(phone, dict)
        and all(is_not_negative(phone.get(f"{network} {fact}")) for fact in ("Latency", "STD"))
        if phone[f"{network} Latency"] > 0  # a few phones have 0, for no measurement
    ]
    if not latencies:
        raise InvalidFile(f"no phone in training_latency.json has numbers '{network} Latency' and '{network} STD'")
    drawn = np.random.default_rng(SEED).integers(len(latencies), size=len(speeds))
    return pa.table(
        {
            "client": np.arange(len(speeds)),
            "seconds": [latencies[k][0] for k in drawn],
            "seconds_cv": [latencies[k][1] for k in drawn],
            "down": [values.mean() for values in speeds],
            "up": [values.mean() for values in speeds],
            "link_cv": [values.std() / values.mean() for values in speeds],
        }
    )


def make_states(case: object, timers: object) -> pa.Table:
    """Return the intervals in which each client is ready, with its period; state 0 for a client that never is.

    Raises:
        InvalidFile: a key of the case is not in the timers, or a trace is invalid.
    """
    rows: list[tuple[int, float, float, int, float]] = []
    for client, key in enumerate(_read_list("the case", case)):
        timer = timers.get(str(key)) if isinstance(timers, dict) else None
        if not isinstance(timer, dict):
            raise InvalidFile(f"client {client}: cached_timers.json has no key {key!r}")
        intervals = list(_read_intervals(client, timer)) if timer.get("isSuccess") else []
        period = int(timer["trace_end"] - timer["trace_start"]) if intervals else 1
        rows += [(client, start, end, 1, period) for start, end in sorted(intervals)] or [(client, 0.0, 1.0, 0, 1.0)]
    names = ("client", "start_s", "end_s", "state", "period_s")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _read_intervals(client: int, timer: dict[str, Any]) -> Iterator[tuple[float, float]]:
    """Yield the intervals of [0, P) in which the client is ready; one that passes P is split."""
    if not all(is_not_negative(timer.get(name)) for name in ("trace_start", "trace_end")):
        raise InvalidFile(f"client {client}: trace_start and trace_end must be numbers of seconds")
    period = int(timer["trace_end"] - timer["trace_start"])
    if period < 1:
        raise InvalidFile(f"client {client}: trace_end must be at least one second after trace_start")
    for interval in _read_list(f"client {client}: ready_time", timer.get("ready_time")):
        if not isinstance(interval, list) or len(interval) != 2 or not all(map(is_not_negative, interval)):
            raise InvalidFile(f"client {client}: ready_time must hold pairs of seconds, got {interval!r:.60}")
        length = min(interval[1], timer["trace_start"] + period) - interval[0]
        start = interval[0] % period
        if length > 0:
            yield start, min(start + length, period)
        if start + length > period:
            yield 0.0, start + length - period


def _read_speeds(client: int, entry: object) -> np.ndarray:
    """Return the measured speeds of a client, in kbit/s."""
    values = entry.get("tcp_speed_results") if isinstance(entry, dict) else None
    if not isinstance(values, list) or not all(map(is_not_negative, values)) or not sum(values) > 0:
        raise InvalidFile(f"client {client}: tcp_speed_results must be a list of numbers, and one of them above 0")
    return np.array(values, np.float64)


def _read_list(name: str, value: object) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise InvalidFile(f"{name} must be a list with entries, got {type(value).__name__}")
    return value


def main(arguments: Sequence[str]) -> int:
    """Convert the files, write the table, and return the exit code."""
    kind, *files = arguments or [""]
    if kind not in ("devices", "states") or len(files) != (4 if kind == "devices" else 3):
        sys.stderr.write(USAGE)
        return 2
    try:
        case, facts = (json.loads(Path(file).read_text()) for file in files[:2])
        table = make_devices(case, facts, files[2]) if kind == "devices" else make_states(case, facts)
    except (InvalidFile, OSError, ValueError) as error:
        sys.stderr.write(f"{files[0]}, {files[1]}: {error}\n")
        return 1
    pq.write_table(table, files[-1])
    sys.stdout.write(f"{files[-1]}: {table.num_rows} rows\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
