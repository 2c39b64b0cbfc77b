"""Sweeps in MLflow: the tag `sweep_id` of a run, and the command that compares the runs of a sweep.

A run belongs to each sweep that trained a part of it, and to each later sweep that found it finished. The tag has their
ids, the earliest first.
"""

import logging
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedcohort.errors import CheckpointError
from fedcohort.host.commands import fedcohort_command
from fedcohort.host.time_limit import limit_time
from fedcohort.record import metadata
from fedcohort.record.observer import RunInfo
from fedcohort.record.tags import BUDGET_TAGS, SEPARATOR, SWEEPS
from fedcohort.roles import RunIdentity, role_of
from fedcohort.tracking import identity, record, server

log = logging.getLogger("fedcohort")
BASELINES = {"selector": "random", "agg": "fedavg"}  # groups that are compared first, with their baselines
SweptRun = tuple[RunInfo, Sequence[str]]  # a run and the overrides of its job


def parse_sweeps(tag_value: str | None) -> list[str]:
    """Return the ids of sweeps in `tag_value`, the value of the tag `sweep_id`; [] for None."""
    return tag_value.split(SEPARATOR) if tag_value else []


def list_sweeps_of_run(folder: Path) -> list[str]:
    """Return the sweeps of the run in `folder`; none if it has not begun or has no metadata."""
    return parse_sweeps(metadata.read_tags(folder).get(SWEEPS)) if (folder / metadata.INFO_FILE).exists() else []


def make_sweeps_tag(folder: Path, sweep: str | None) -> dict[str, str]:
    """Return the tag of the run in `folder` with `sweep` added; {} without any sweep."""
    sweep_ids = list(dict.fromkeys([*list_sweeps_of_run(folder), *([sweep] if sweep else [])]))
    return {SWEEPS: SEPARATOR.join(sweep_ids)} if sweep_ids else {}


def add_sweep(folder: Path, sweep: str) -> None:
    """Record that the finished run in `folder` also belongs to `sweep`, unless its metadata is missing or damaged."""
    try:
        info = metadata.load_info(folder)
    except CheckpointError:
        return
    metadata.rewrite_info(replace(info, tags={**info.tags, **make_sweeps_tag(folder, sweep)}))


def send_sweeps(runs: Sequence[RunInfo]) -> None:
    """Send the sweeps of finished runs to MLflow; an unreachable server only causes a message.

    Args:
        runs: metadata of the runs, each with the tag `sweep_id`. Runs without an MLflow run are left out.
    """
    for info in runs:
        tracked_run = identity.load_tracked_run(info.folder)
        if tracked_run is None or tracked_run.run_id is None:
            continue
        try:
            with limit_time(server.SWEEP_WAIT_S, "sending"):
                server.connect(tracked_run.place).set_tag(tracked_run.run_id, SWEEPS, info.tags[SWEEPS])
        except server.expected_errors() as error:
            log.warning(
                "MLflow at %s cannot record that %s belongs to this sweep, too (%s)",
                tracked_run.tracking_uri,
                info.name,
                server.root_cause(error),
            )


def list_compare_options(sweep: str, runs: Sequence[SweptRun]) -> dict[str, str]:
    """Return the options of `fedcohort compare` for the tracked runs of a sweep.

    Two of the swept parameters are rows and columns; of each of the others one value is selected.
    """
    axes, fixed_options = choose_axes(runs)
    options = {"sweep": sweep, **axes}
    if fixed_options:  # the budget (`rounds`) of extended runs is current in tags only
        prefixes = {key: "tags" if key in BUDGET_TAGS else "params" for key in fixed_options}
        options["filter"] = " and ".join(f'{prefixes[key]}.`{key}` = "{value}"' for key, value in fixed_options.items())
    tracked_run = identity.load_tracked_run(runs[0][0].folder)
    return options | (server.list_place_options(tracked_run.place) if tracked_run is not None else {})


def spell_compare_command(sweep: str, runs: Sequence[SweptRun]) -> str:
    """Return a line with the command that compares the runs of a sweep."""
    option_texts = [f"{option}={value}" for option, value in list_compare_options(sweep, runs).items()]
    fixed = choose_axes(runs)[1]
    runs_text = f"the runs of {', '.join(f'{option}={value}' for option, value in fixed.items())}" if fixed else "them"
    return f"Compare {runs_text}: {fedcohort_command('compare')} {shlex.join(option_texts)}"


def choose_axes(runs: Sequence[SweptRun]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the rows, columns and baseline of a comparison, and a value of each further option that varies.

    The baseline is the usual one (random selection, FedAvg), if the runs have it.
    """
    values_by_option, preferred = _list_swept_options(runs), list(BASELINES)
    names = sorted(values_by_option, key=lambda name: preferred.index(name) if name in preferred else len(preferred))
    axes = dict(zip(("rows", "cols"), names, strict=False))
    if baseline := next((BASELINES[name] for name in names[:2] if BASELINES.get(name) in values_by_option[name]), None):
        axes["baseline"] = baseline
    return axes, {name: values_by_option[name][0] for name in names[2:]}


def _list_swept_options(runs: Sequence[SweptRun]) -> dict[str, list[str]]:
    """Return the values of each overridden parameter in which the runs differ, without the seed.

    MLflow has these parameters, and a table over seeds can show several values of them.
    """
    keys = dict.fromkeys(text.lstrip("+").partition("=")[0].split("@")[-1] for _, words in runs for text in words)
    params = [record.list_params(info) for info, _ in runs]
    values = {key: list(dict.fromkeys(run_params[key] for run_params in params if key in run_params)) for key in keys}
    return {key: x for key, x in values.items() if len(x) > 1 and role_of(key).identity is not RunIdentity.SEED}
