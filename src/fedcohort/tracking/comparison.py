"""The command that compares the runs of a sweep."""

import shlex
from collections.abc import Mapping, Sequence

from fedcohort.host.commands import fedcohort
from fedcohort.record.observer import RunInfo
from fedcohort.record.tags import BUDGET
from fedcohort.roles import Identity, role_of
from fedcohort.tracking import identity, record, server

FIRST = {"selector": "random", "agg": "fedavg"}  # what is compared before anything else, and to which baseline
Run = tuple[RunInfo, Sequence[str]]  # with the words that its job was given


def options_of(sweep: str, runs: Sequence[Run]) -> dict[str, str]:
    """The options of `fedcohort compare` for the `runs` of a sweep, which MLflow knows.

    Two of the things that were swept stand down and across, of others one value is taken.
    """
    shown, others = choose_axes(runs)
    found = {"sweep": sweep, **dict(zip(("rows", "cols"), shown, strict=False))}
    if (baseline := choose_baseline(shown)) is not None:
        found["baseline"] = baseline
    if others:
        found["filter"] = " and ".join(_condition(key, values[0]) for key, values in others.items())
    known = identity.load(runs[0][0].folder)
    return found | (server.options_of(known.place) if known is not None else {})


def choose_baseline(shown: Mapping[str, Sequence[str]]) -> str | None:
    """Return the usual baseline among the values of rows and columns (random selection, FedAvg); None without one."""
    return next((FIRST[key] for key, values in shown.items() if FIRST.get(key) in values), None)


def command_of(sweep: str, runs: Sequence[Run]) -> str:
    """How the `runs` of a sweep are compared."""
    words = [f"{option}={value}" for option, value in options_of(sweep, runs).items()]
    others = choose_axes(runs)[1]
    which = f"those of {', '.join(f'{key}={values[0]}' for key, values in others.items())}" if others else "them"
    return f"Compare {which}: {fedcohort('compare')} {shlex.join(words)}"


def choose_axes(runs: Sequence[Run]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the options that were swept, with their values: the rows and columns of the table, and the others."""
    swept = _swept(runs)
    order = sorted(swept, key=lambda key: list(FIRST).index(key) if key in FIRST else len(FIRST))
    return {key: swept[key] for key in order[:2]}, {key: swept[key] for key in order[2:]}


def _swept(runs: Sequence[Run]) -> dict[str, list[str]]:
    """The parameters that were typed and of which the runs have several values, with those; the seed is none."""
    typed = [word.lstrip("+").partition("=")[0].split("@")[-1] for _, words in runs for word in words]
    values = {key: [fact for run, _ in runs if (fact := _fact(run, key)) is not None] for key in dict.fromkeys(typed)}
    distinct = {key: list(dict.fromkeys(of)) for key, of in values.items() if _is_row(key)}
    return {key: of for key, of in distinct.items() if len(of) > 1}


def _is_row(key: str) -> bool:
    """Whether MLflow knows it as a parameter of which a table over seeds can show several values."""
    role = role_of(key)
    return role.tracked and role.identity is not Identity.SEED


def _fact(run: RunInfo, key: str) -> str | None:
    """The word of a group or the value of an option, as MLflow has it; None for what is neither."""
    if key in run.choices:
        return run.choices[key]
    node: object = run.config
    for part in key.split("."):
        if not isinstance(node, Mapping) or part not in node:
            return None
        node = node[part]
    return None if isinstance(node, Mapping) else record.text(node)


def _condition(key: str, value: str) -> str:
    """Spell a condition in MLflow's language.

    The budget (`rounds`) among the parameters of a run that was extended is out of date, its tag is not.
    """
    return f'{"tags" if key in BUDGET else "params"}.`{key}` = "{value}"'
