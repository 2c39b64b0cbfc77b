"""Verify a file of the protocol: repeat runs of two settings here, and compare them to the bit.

The settings follow from a digest of the runs in the file, so that its author does not choose them.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.results.frame import read_clock_limit
from fedcohort.study import tasks
from fedcohort.study.measure import make_row
from fedcohort.study.protocol import ProtocolPart
from fedcohort.study.protocol_file import CONFIG_IDENTITY_COLUMNS, MEASURED_COLUMNS, RUN_COLUMNS, ProtocolFile
from fedcohort.study.result_files import Row
from fedcohort.study.tasks import RunOutcome, RunTask

N_REPEATED_SETTINGS = 2


def choose_runs_to_repeat(file: ProtocolFile) -> list[tuple[ProtocolPart, Row]]:
    """Return the runs of `file` to repeat: method and baseline with the first seed, in two of the settings.

    A digest of all runs in the file and the setting's name is computed for each setting. The two settings with the
    smallest digests are taken, so that the author of the file cannot choose them.
    """
    rows = [row for _, results in file.runs_by_part for _, row in sorted(results.rows.items())]
    runs_json = json.dumps([[row["study"], *(row[name] for name in RUN_COLUMNS)] for row in rows])

    def find_digest(setting: tuple[int, str]) -> str:
        return hashlib.blake2b(f"{runs_json} {setting}".encode()).hexdigest()

    settings = [(i, setting) for i, (part, _) in enumerate(file.runs_by_part) for setting in part.settings]
    chosen_runs = []
    for i, setting in sorted(settings, key=find_digest)[:N_REPEATED_SETTINGS]:
        part, results = file.runs_by_part[i]
        for method in (part.selector, part.study.baseline):
            chosen_runs.append((part, results.rows[setting, method, part.seeds[0]]))
    return chosen_runs


def verify_protocol_runs(
    file: ProtocolFile,
    configs: Path,
    logs_folder: Path,
    print_line: Callable[[str], None],
    launch_options: LaunchOptions,
) -> bool:
    """Repeat some runs of a `protocol.json`, print how they compare, and return whether all are bit-identical.

    Args:
        file: the content of the file.
        configs: the folder of Hydra's config groups.
        logs_folder: folder of the repeated runs, which are removed.
        print_line: function that prints a line.
        launch_options: how jobs are started.

    Raises:
        OptionError: the file's selector is not installed.
    """
    runs, selector = choose_runs_to_repeat(file), file.selector
    is_known_selector = any(selector in part.study.role_by_method for part, _ in runs)
    if not is_known_selector and not (configs / "selector" / f"{selector}.yaml").is_file():
        raise OptionError(
            f"{file.path}: this copy of fedcohort lacks the selector {selector}: add its "
            f"configs/selector/{selector}.yaml and src/fedcohort/selector/{selector}.py"
        )
    print_line(f"{len(runs)} runs to repeat, in settings chosen by a hash of the file's content")
    run_tasks = [
        RunTask(row["overrides"], row["seed"], configs, logs_folder, part.study.metric, keeps_run=False, resume=False)
        for part, row in runs
    ]
    n_equal_runs = 0
    with closing(tasks.run_tasks(run_tasks, launch_options)) as outcomes:
        for task_number, outcome in outcomes:
            part, row = runs[task_number]
            difference_lines = _compare_run(part, row, outcome, configs)
            n_equal_runs += not difference_lines
            run_name = f"{part.study.name} {row['cell']} {row['selector']} seed {row['seed']}"
            verdict_text = "\n  ".join(["differs", *difference_lines]) if difference_lines else "equal to the bit"
            print_line(f"{run_name}: {verdict_text}")
    return n_equal_runs == len(runs)


def _compare_run(part: ProtocolPart, row: Row, outcome: RunOutcome, configs: Path) -> list[str]:
    """Return lines on the differences between a run in a file and its repetition; [] if they are equal to the bit.

    Args:
        part: study, settings and seeds that the run belongs to.
        row: the run in the file, as a row of results.
        outcome: outcome of the repetition.
        configs: the folder of Hydra's config groups.
    """
    if outcome.curve is None:
        return [f"not repeated, {outcome.status}: {outcome.reason}"]
    repeated_row = outcome.result_columns | tasks.identify_run_config(row["overrides"], configs)
    curve = outcome.curve.cut_at_horizon(part.study.horizon, read_clock_limit(repeated_row["budget"]))
    repeated_row |= make_row(curve, part.study.comparison_options)
    # a diverged run has NaN as its result, which is not equal to itself
    columns = [c for c in (*CONFIG_IDENTITY_COLUMNS, *MEASURED_COLUMNS) if repr(row[c]) != repr(repeated_row[c])]
    if not columns:
        return []
    run_origins = [
        {**json.loads(r["versions"] or "{}"), **{c: r[c] for c in ("processor", "sources", "commit")}}
        for r in (row, repeated_row)
    ]
    origin_differences = [
        f"{name} {run_origins[0].get(name)!r}, here {run_origins[1].get(name)!r}"
        for name in dict.fromkeys((*run_origins[1], *run_origins[0]))
        if run_origins[0].get(name) != run_origins[1].get(name)
    ]
    result_text = (
        f"result {row['late']!r}, here {repeated_row['late']!r}, difference {repeated_row['late'] - row['late']:+.3g}"
    )
    return [
        f"columns: {', '.join(columns)}",
        result_text,
        *(origin_differences or ["processor, versions and code are the same"]),
    ]
