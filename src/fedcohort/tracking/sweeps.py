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
from fedcohort.host.commands import format_fedcohort_command
from fedcohort.host.time_limit import limit_block_time
from fedcohort.record import metadata
from fedcohort.record.observer import RunInfo
from fedcohort.record.tags import BUDGET_TAGS, SWEEPS_TAG, TAG_SEPARATOR
from fedcohort.roles import RunIdentity, find_role
from fedcohort.tracking import identity, record, server

log = logging.getLogger("fedcohort")
BASELINE_BY_GROUP = {"selector": "random", "agg": "fedavg"}  # groups that are compared first, with their baselines
SweptRun = tuple[RunInfo, Sequence[str]]  # a run and the overrides of its job


def parse_sweeps(tag_value: str | None) -> list[str]:
    """Return the ids of sweeps in `tag_value`, the value of the tag `sweep_id`; [] for None."""
    return tag_value.split(TAG_SEPARATOR) if tag_value else []


def list_sweeps_of_run(folder: Path) -> list[str]:
    """Return the sweeps of the run in `folder`; none if it has not begun or has no metadata."""
    return parse_sweeps(metadata.read_tags(folder).get(SWEEPS_TAG)) if (folder / metadata.INFO_FILE).exists() else []


def make_sweeps_tag(folder: Path, sweep_id: str | None) -> dict[str, str]:
    """Return the tag of the run in `folder` with `sweep_id` added; {} without any sweep."""
    sweep_ids = list(dict.fromkeys([*list_sweeps_of_run(folder), *([sweep_id] if sweep_id else [])]))
    return {SWEEPS_TAG: TAG_SEPARATOR.join(sweep_ids)} if sweep_ids else {}


def add_sweep_to_run(folder: Path, sweep_id: str) -> None:
    """Record that the finished run in `folder` also belongs to `sweep_id`, unless its metadata can't be read."""
    try:
        info = metadata.load_info(folder)
    except CheckpointError:
        return
    metadata.save_info(replace(info, tags={**info.tags, **make_sweeps_tag(folder, sweep_id)}), adds_start_time=False)


def send_sweep_tags(run_infos: Sequence[RunInfo]) -> None:
    """Send the sweeps of finished runs to MLflow; an unreachable server only causes a message.

    Args:
        run_infos: metadata of the runs, each with the tag `sweep_id`. Runs without an MLflow run are left out.
    """
    for info in run_infos:
        tracked_run = identity.load_tracked_run(info.folder)
        if tracked_run is None or tracked_run.run_id is None:
            continue
        try:
            with limit_block_time(server.SWEEP_WAIT_S, "sending"):
                server.connect(tracked_run.server_location).set_tag(
                    tracked_run.run_id, SWEEPS_TAG, info.tags[SWEEPS_TAG]
                )
        except server.list_server_errors() as error:
            record_text = f"record that {info.name} belongs to this sweep, too ({server.find_cause(error)})"
            log.warning("MLflow at %s cannot %s", tracked_run.tracking_uri, record_text)


def list_compare_options(sweep_id: str, swept_runs: Sequence[SweptRun]) -> dict[str, str]:
    """Return the options of `fedcohort compare` for the tracked runs of a sweep.

    Two of the swept parameters become rows and columns. Of each other swept parameter, one value is selected.

    Args:
        sweep_id: id of the sweep.
        swept_runs: metadata of each run, and the overrides of its job.
    """
    comparison_axes, fixed_options = choose_axes(swept_runs)
    compare_options = {"sweep": sweep_id, **comparison_axes}
    if fixed_options:  # the budget (`rounds`) of extended runs is current in tags only
        prefix_by_name = {k: "tags" if k in BUDGET_TAGS else "params" for k in fixed_options}
        compare_options["filter"] = " and ".join(f'{prefix_by_name[k]}.`{k}` = "{v}"' for k, v in fixed_options.items())
    tracked_run = identity.load_tracked_run(swept_runs[0][0].folder)
    return compare_options | (
        server.list_server_options(tracked_run.server_location) if tracked_run is not None else {}
    )


def format_compare_command(sweep_id: str, swept_runs: Sequence[SweptRun]) -> str:
    """Return the command that compares the runs of a sweep, as a line; arguments as in `list_compare_options`."""
    option_texts = [f"{o}={v}" for o, v in list_compare_options(sweep_id, swept_runs).items()]
    fixed_options = choose_axes(swept_runs)[1]
    runs_text = f"the runs of {', '.join(f'{o}={v}' for o, v in fixed_options.items())}" if fixed_options else "them"
    return f"Compare {runs_text}: {format_fedcohort_command('compare')} {shlex.join(option_texts)}"


def choose_axes(swept_runs: Sequence[SweptRun]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the rows, columns and baseline of a comparison, and a value of each further option that varies.

    The baseline is the usual one (random selection, FedAvg), if the runs have it. `swept_runs` has the metadata of each
    run, and the overrides of its job.
    """
    values_by_option, option_priority = _list_swept_options(swept_runs), list(BASELINE_BY_GROUP)
    option_names = sorted(
        values_by_option, key=lambda n: option_priority.index(n) if n in option_priority else len(option_priority)
    )
    comparison_axes = dict(zip(("rows", "cols"), option_names, strict=False))
    if baseline := next(
        (BASELINE_BY_GROUP[n] for n in option_names[:2] if BASELINE_BY_GROUP.get(n) in values_by_option[n]), None
    ):
        comparison_axes["baseline"] = baseline
    return comparison_axes, {n: values_by_option[n][0] for n in option_names[2:]}


def _list_swept_options(swept_runs: Sequence[SweptRun]) -> dict[str, list[str]]:
    """Return the values of each swept parameter in which `swept_runs` differ, by name, without the seed.

    An override that all jobs have is not swept. The values of its parameter may differ: a swept option may change what
    `heterogeneity` sets.
    """
    common_overrides = set.intersection(*(set(job_overrides) for _, job_overrides in swept_runs))
    option_names = dict.fromkeys(
        override.lstrip("+").partition("=")[0].split("@")[-1]
        for _, job_overrides in swept_runs
        for override in job_overrides
        if override not in common_overrides
    )
    params_by_run = [record.list_params(info) for info, _ in swept_runs]
    values_by_option = {k: list(dict.fromkeys(p[k] for p in params_by_run if k in p)) for k in option_names}
    return {
        k: x
        for k, x in values_by_option.items()
        if len(x) > 1 and find_role(k).identity is not RunIdentity.OTHER_RUN_BY_SEED
    }
