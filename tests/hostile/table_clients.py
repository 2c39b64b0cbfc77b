"""Columns of clients in a user's own tables, which `dataset=folder` must reject, or take with a notice."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from folder_tables import set_value
from hostile.harness import Case
from hostile.tables import Columns, N, table


def client_tables() -> list[Case]:
    names = [f"c{k // 10}" for k in range(N)]
    client_options = "dataset.client=who clients=null"

    def clients(name: str, values: Any, *expected: str, test: Columns | None = None, **case_options: Any) -> Case:
        return table(
            name,
            {"who": values},
            *expected,
            test=test,
            overrides=case_options.pop("overrides", client_options),
            **case_options,
        )

    return [
        clients("no client column", None, "has no column 'who'"),
        clients("one client", ["a"] * N, "cohort"),
        clients("an empty client", set_value(names, 7, None), "row 7 is empty"),
        clients("a NaN client", set_value([float(k // 10) for k in range(N)], 7, float("nan")), "row 7"),
        clients("a client of spaces", set_value(names, 7, " "), "row 7 is empty"),
        clients("fractional clients", [k / 2 for k in range(N)], "row 1 has client 0.5"),
        clients("infinite clients", set_value([float(k // 10) for k in range(N)], 7, float("inf")), "row 7"),
        clients("clients are lists", [[k // 10] for k in range(N)], "who"),
        clients("clients are dates", pa.array([k // 10 for k in range(N)], pa.timestamp("s")), "who"),
        clients("clients are bytes", [b"a", b"b"] * (N // 2), "who"),
        clients("clients of one row", [f"c{k}" for k in range(N)], "owners with more than 3 training samples"),
        clients("one client of one row", set_value(names, 0, "z"), "fewer than"),
        clients("clients of two rows", [f"c{k // 2}" for k in range(N)], "owners with more than 3"),
        clients(
            "no client of train has test rows",
            names,
            "no client of the training data has test rows",
            test={"who": [f"d{k // 10}" for k in range(N)]},
        ),
        clients("test has no clients", names, "1: x", test={"who": None}, accepted=True),
        clients("test has texts, train numbers", [k // 10 for k in range(N)], "who", test={"who": names}),
        clients("test has other clients, too", names, "1: x", test={"who": set_value(names, 0, "z")}, accepted=True),
        clients("clients= of owners", names, "clients", overrides="dataset.client=who clients=100"),
        clients(
            "client column with another partition",
            names,
            "dataset.client=who",
            overrides="dataset.client=who heterogeneity=noniid30",
        ),
        clients("huge ids", [2**62 + k // 10 for k in range(N)], "1: x", accepted=True),
        clients("negative ids", [-(k // 10) for k in range(N)], "1: x", accepted=True),
        clients("ids in Unicode", [f"Ü{k // 10} ☃" for k in range(N)], "1: x", accepted=True),
        clients(
            "the client column is an input",
            names,
            "must be two columns",
            overrides="dataset.client=who dataset.features=who",
        ),
    ]


def cases() -> list[Case]:
    """List the cases."""
    return [replace(case, name=f"clients: {case.name}") for case in client_tables()]
