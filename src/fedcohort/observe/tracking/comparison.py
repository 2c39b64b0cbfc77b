"""The command that compares the runs of a sweep."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedcohort.host.commands import fedcohort
from fedcohort.observe.tracking import identity, record, server
from fedcohort.record.observer import RunInfo
from fedcohort.roles import Identity, role_of

FIRST = {"selector": "random", "agg": "fedavg"}  # what is compared before anything else, and to which baseline
COMPARE_READS = ("sqlite:///logs/mlflow.db", "fedcohort")  # the database and the experiment, where it is told of none
Run = tuple[RunInfo, Sequence[str]]  # with the words that its job was given


def command_of(sweep: str, runs: Sequence[Run]) -> str:
    """How the `runs` of a sweep are compared: two of the things that were swept down and across, one value of others.

    MLflow knows them all.
    """
    swept = _swept(runs)
    order = sorted(swept, key=lambda key: list(FIRST).index(key) if key in FIRST else len(FIRST))
    shown, constants = order[:2], {key: swept[key][0] for key in order[2:]}
    words = [f"sweep={sweep}", *(f"{option}={key}" for option, key in zip(("rows", "cols"), shown, strict=False))]
    words += [f"baseline={FIRST[key]}" for key in shown if FIRST.get(key) in swept[key]][:1]
    words += ["filter=" + " and ".join(_condition(key, value) for key, value in constants.items())] if constants else []
    words += _where(runs[0][0].folder)
    which = f"those of {', '.join(f'{key}={value}' for key, value in constants.items())}" if constants else "them"
    return f"Compare {which}: {fedcohort('compare')} {shlex.join(words)}"


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
    return f'{"tags" if key in record.BUDGET else "params"}.`{key}` = "{value}"'


def _where(folder: Path) -> list[str]:
    """The options without which `fedcohort compare` would look elsewhere."""
    known = identity.load(folder)
    if known is None:
        return []
    uri, experiment = COMPARE_READS
    words = (
        []
        if known.place == server.place(uri, known.experiment, Path("logs"))
        else [f"tracking_uri={known.tracking_uri}"]
    )
    return words + ([] if known.experiment == experiment else [f"experiment={known.experiment}"])
