"""Tables and options of availability that are damaged, out of range, contradictory or merely odd.

Each case is a run of one round, in a fork of a process that has imported everything.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hostile.devices import INF, NAN, Columns, option_case, table_case
from hostile.harness import Case

READY: dict[str, list[Any]] = {"client": [0, 1, 2], "start_s": [0, 0, 0], "end_s": [900, 900, 900]}
UNIX = 1.7e9


def availability_tables() -> list[Case]:
    def case(
        name: str, columns: Columns, *expected: str, overrides: Sequence[str] = (), accepted: bool = False
    ) -> Case:
        return table_case("availability", name, {**READY, **columns}, *expected, overrides=overrides, accepted=accepted)

    start, end, state, own_periods = (
        "availability.start",
        "availability.end",
        ["availability.state=state"],
        "availability.period",
    )
    grid = ["availability.start=step", "availability.step_s=60"]
    period = ["availability.period=period"]
    two_intervals = {"client": [0, 0, 1, 2], "start_s": [0, 10, 0, 0], "end_s": [20, 30, 30, 30]}
    unix = {"start_s": [UNIX, UNIX, UNIX], "end_s": [UNIX + 900, UNIX + 900, UNIX + 900]}
    return [
        case("a state of 2", {"state": [1, 2, 0]}, *state[0].split("=")[:1], "row 1 holds 2", overrides=state),
        case(
            "a state of yes",
            {"state": ["yes", "no", "no"]},
            "availability.state",
            "must hold numbers",
            overrides=state,
        ),
        case("a missing state", {"state": [1, None, 1]}, "availability.state", "row 1 is empty", overrides=state),
        case("no client ever ready", {"state": [0, 0, -1]}, "availability.path", "ever available", overrides=state),
        case(
            "own periods and one for all",
            {"period": [900.0] * 3},
            own_periods,
            "period_s",
            overrides=[*period, f"{own_periods}_s=900"],
        ),
        case("a period of 1e308", {}, "period_s", "1e+308", overrides=[f"{own_periods}_s=1e308"]),
        case("a period of NaN", {}, "period_s", "nan", overrides=[f"{own_periods}_s=nan"]),
        case(
            "a period that ends before a row", {}, "period_s", "row 0 ends at 900", overrides=[f"{own_periods}_s=800"]
        ),
        case(
            "an own period of 1e308", {"period": [900, 900, 1e308]}, own_periods, "row 2 holds 1e+308", overrides=period
        ),
        case("an own period of nothing", {"period": [900, 0, 900]}, own_periods, "row 1 holds 0", overrides=period),
        case(
            "two periods of a client",
            {**two_intervals, "end_s": [9, 30, 30, 30], "period": [30, 40, 30, 30]},
            own_periods,
            overrides=period,
        ),
        case("an empty interval", {"end_s": [900, 0, 900]}, start, "row 1", "at least a microsecond"),
        case("an end before its start", {"start_s": [0, 500, 0], "end_s": [900, 400, 900]}, start, "row 1"),
        case("an interval of a picosecond", {"end_s": [900, 1e-12, 900]}, start, "row 1", "at least a microsecond"),
        case("intervals that overlap", two_intervals, start, "row 1", "apart"),
        case(
            "intervals out of order",
            {**two_intervals, "start_s": [50, 10, 0, 0], "end_s": [60, 30, 30, 30]},
            start,
            "row 1",
        ),
        case("a negative start", {"start_s": [-1, 0, 0]}, start, "row 0 holds -1"),
        case("an end of 1e308", {"end_s": [900, 900, 1e308]}, end, "row 2 holds 1e+308"),
        case("an infinite end", {"end_s": [900, INF, 900]}, end, "row 1 has a value that is NaN"),
        case("an end of NaN", {"end_s": [900, NAN, 900]}, end, "row 1 has a value that is NaN"),
        case("an end without a value", {"end_s": [900, None, 900]}, end, "row 1 is empty"),
        case(
            "dates",
            {"start_s": ["2024-01-01", "2024-01-01", "2024-01-01"]},
            start,
            "must hold numbers",
        ),
        case("moments", {"start_s": [datetime(2024, 1, 1)] * 3}, start, "must hold numbers"),
        case("UNIX seconds", unix, "begin", "1700000000", "UNIX", accepted=True),
        case(
            "UNIX seconds in steps",
            {"step": [int(UNIX) // 60] * 3},
            *("begin", "UNIX"),
            overrides=[*grid, "availability.end=none"],
            accepted=True,
        ),
        case(
            "UNIX milliseconds",
            {name: [1000 * cell for cell in cells] for name, cells in unix.items()},
            *(start, "row 0 holds 1700000000000", "milliseconds"),
        ),
        case(
            "UNIX seconds of one client alone",
            {"start_s": [0, 0, UNIX], "end_s": [900, 900, UNIX + 900]},
            *(end, "row 2", "1e9"),
        ),
        case("half a step", {"step": [0.5, 1.0, 1.0]}, start, "row 0 holds 0.5", "integer", overrides=grid),
        case("a negative step", {"step": [-1, 1, 1]}, start, "row 0 holds -1", overrides=grid),
        case("a step twice", {**two_intervals, "step": [1, 1, 1, 1]}, start, "row 1", overrides=grid),
        case(
            "steps of 1e308 seconds",
            {"step": [0, 1, 1]},
            "step_s",
            "1e+308",
            overrides=[*grid, "availability.step_s=1e308"],
        ),
        case("steps and ends", {"step": [0, 0, 0]}, "availability.step_s", "'end_s'", overrides=grid, accepted=True),
        case("starts as ends", {}, "availability.end and start", "'start_s'", overrides=[f"{end}=start_s"]),
        case("names as starts", {}, "availability.start and client", "'client'", overrides=[f"{start}=client"]),
        case("states as periods", {"state": [1, 1, 1]}, "'state'", overrides=[*state, f"{own_periods}=state"]),
        case("a missing column", {}, own_periods, "no column 'own'", overrides=[f"{own_periods}=own"]),
        case("spaces around a name", {"client": ["a", " b", "c"]}, "availability.client", "row 1", "' b'"),
        case("a gap in the names", {"client": [0, 1, 5]}, "add client 2", "availability.assign=drawn"),
        case(
            "too few clients",
            {},
            "3 devices, too few for 4 clients",
            "availability.assign=drawn",
            overrides=["clients=4"],
        ),
        case(
            "idle clients by id",
            {},
            *("availability.idle=false", "no effect"),
            overrides=["availability.idle=false"],
            accepted=True,
        ),
    ]


def availability_options() -> list[Case]:
    def case(name: str, overrides: Sequence[str], *expected: str) -> Case:
        return option_case(f"availability: {name}", overrides, *expected)

    trace, diurnal, bernoulli = (f"availability={choice}" for choice in ("trace", "diurnal", "bernoulli"))
    return [
        case("an assignment at random", [trace, "availability.assign=random"], "assign", "by_id", "'random'"),
        case("a flag of maybe", [trace, "availability.idle=maybe"], "idle", "'maybe'"),
        case("steps of no seconds", [trace, "availability.step_s=0"], "step_s", "got 0"),
        case("a period of a picosecond", [trace, "availability.period_s=1e-12"], "period_s", "1e-12"),
        case("a day of 1e308 seconds", [diurnal, "availability.day_s=1e308"], "day_s", "1e+308"),
        case("a day of a picosecond", [diurnal, "availability.day_s=1e-12"], "day_s", "1e-12"),
        case("no share of the day", [diurnal, "availability.share=0"], "share", "got 0"),
        case("a share of 1e-300", [diurnal, "availability.share=1e-300"], "share", "1e-300"),
        case("a probability of 0", [bernoulli, "availability.p=0"], "p must be", "got 0"),
        case("a probability of 1e-300", [bernoulli, "availability.p=1e-300"], "p must be", "1e-300"),
        case("a probability of 80", [bernoulli, "availability.p=80"], "p must be", "got 80"),
        case("a probability of NaN", [bernoulli, "availability.p=nan"], "p must be", "nan"),
    ]


def cases() -> list[Case]:
    """List the cases: tables, then options."""
    return [*availability_tables(), *availability_options()]
