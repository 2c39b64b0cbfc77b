"""`fedcohort.run`: train one run in this process, as `python train.py` does, and return its result.

Data that are passed as `dataset=`, a data frame or NumPy arrays, are written as a table that `dataset=folder` reads.
"""

import hashlib
import io
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort import ranges, units
from fedcohort.console import terminal
from fedcohort.errors import OptionError
from fedcohort.host import messages
from fedcohort.host.interrupt import STOPPED_BEFORE_TRAINING, StoppedBySignal
from fedcohort.jobs.job import check_and_train
from fedcohort.record import folder, history, metadata
from fedcohort.record.folder import write_atomically
from fedcohort.record.observer import RunInfo
from fedcohort.report import run_figures
from fedcohort.results.summary import summarise_run
from fedcohort.results.summary_rows import list_brief_rows
from fedcohort.startup import command_line, compose
from fedcohort.startup.hydra_errors import raise_one_line_errors
from fedcohort.startup.options import check_writable_folder
from fedcohort.startup.overrides import list_overrides

if TYPE_CHECKING:
    import pandas as pd

INTERRUPTED_EXIT_CODE = 128 + signal.SIGINT
TABLES_FOLDER = "tables"  # in paths.logs
LABEL_COLUMN = "label"
COLUMN_REMEDY = "Pass columns of different names with numbers, texts, booleans or lists of numbers"
TEST_SHARE = 0.2  # of the rows, where `dataset.test_share` is not passed


def read_path(option: str, value: object) -> Path:
    """Return `value`, a text or a path, as a path; raise `OptionError` for `option` if it is anything else."""
    if not isinstance(value, str | Path):
        raise ranges.range_error(option, "a path", value)
    return Path(value)


@dataclass(frozen=True)
class RunResult:
    """The results of a run. The files in its folder are read when an attribute is accessed.

    Attributes:
        folder: folder of the run, with config.yaml, journal.jsonl, clients.parquet, summary.json and checkpoints.
    """

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", read_path("folder", self.folder))

    @cached_property
    def info(self) -> RunInfo:
        """Options, seed, commit, and the size, classes and label noise of each client."""
        return metadata.load_info(self.folder)

    @cached_property
    def rounds(self) -> "pd.DataFrame":
        """One row per round (`step`; 0 is the untrained model), one column per metric; NaN if it was not measured."""
        return self._history.metrics

    @cached_property
    def clients(self) -> "pd.DataFrame":
        """One row per round (`step`) and client that was selected, queried or measured in the round."""
        return self._history.clients()

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of `summary.json`: last and best metrics, cost, fingerprint, versions."""
        ended_ms = self._history.times[-1] if self._history.times else None
        return summarise_run(self.info, self._history, self.status, ended_ms)

    @property
    def status(self) -> str:
        """`finished`, `interrupted`, `failed` or `running`."""
        return str(folder.read_status(self.folder).get("status", "running"))

    @property
    def accuracy(self) -> float:
        """The last test accuracy, in [0, 1]; NaN if none was measured."""
        return float(self.summary["final"].get(history.MAIN_METRIC, float("nan")))

    @property
    def fingerprint(self) -> str:
        """A hash of all selections and weights: equal for runs that are equal to the bit."""
        return str(self.summary["fingerprint"])

    def __repr__(self) -> str:
        summary = self.summary
        progress_text = f"{summary['rounds']} of {units.format_count(summary['rounds_asked'], 'round')}"
        text_lines = [f"{summary['name']}: {summary['status']} after {progress_text}"]
        text_lines += [f"  {row_label:<40}{value_text}" for row_label, value_text in list_brief_rows(summary)]
        if self.status == "interrupted":
            text_lines.append("  run(..., resume=True) with the same options continues it")
        return "\n".join([*text_lines, f"  folder  {self.folder}"])

    def _repr_html_(self) -> str:
        if self.info.config["callback"].get("figures") and not (self.folder / run_figures.PAGE_FILE).exists():
            run_figures.redraw_run(self.folder)  # a run in a notebook has no terminal, and draws none at its end
        return run_figures.show_in_notebook(self.info, self.summary)

    @cached_property
    def _history(self) -> history.History:
        return history.read_history(self.folder)


def run(**options: object) -> RunResult:
    """Train one run as `python train.py` does, and return its result.

        run(selector="flash", agg="scaffold", rounds=20, client={"lr": 0.05}, **{"selector.lam": 2})

    Ctrl-C ends the run after the current round: the result then has the rounds so far, and the same call with
    `resume=True` continues the run. A call with `resume=True` for a finished run returns its result.

    Args:
        options: choices of groups and values of options, by name. A dict sets several options of a group or node.
            `model` may be a class or a function that makes an `nn.Module`. `dataset` may be a data frame, or a pair of
            arrays with samples and labels.

    Returns:
        The result, which reads the run's folder.

    Raises:
        FedcohortError: with the message that the command prints.
        KeyboardInterrupt: where Ctrl-C came before the first round had ended.
    """
    return run_with_overrides(list_overrides(replace_passed_data(options)))


def run_with_overrides(overrides: Sequence[str]) -> RunResult:
    """Train the run of `python train.py` with these `overrides`, and return its result, as `run` does.

    Raises `FedcohortError`, with the message that the command prints, and `KeyboardInterrupt` where Ctrl-C came before
    the first round had ended.
    """
    configs_folder = find_config_folder()
    messages.log_to_terminal()
    with raise_one_line_errors(overrides, configs_folder), terminal.print_progress_only():
        command_line.check_command_line(overrides, configs_folder)
        try:
            return RunResult(check_and_train(compose.compose_run(overrides, configs_folder)))
        except SystemExit as stop:
            if stop.code != INTERRUPTED_EXIT_CODE:
                raise
            if isinstance(stop, StoppedBySignal):
                return RunResult(stop.folder)
            raise KeyboardInterrupt(STOPPED_BEFORE_TRAINING) from None


def find_config_folder() -> Path:
    """Return the folder configs/ in the working folder, in a folder above it, or in this installation.

    Raises `OptionError` if none of them has one.
    """
    for parent_folder in [Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[3]]:
        if (parent_folder / "configs" / "train.yaml").is_file() and (parent_folder / "configs" / "selector").is_dir():
            return parent_folder / "configs"
    raise OptionError(
        f"there is no folder configs/ in {Path.cwd()} or above it: work in a checkout of fedcohort, "
        "or install it from one with pip install --editable"
    )


def replace_passed_data(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with `dataset=folder` in place of passed data, and write these data into `paths.logs`.

    The table's folder is named after its content, so that equal data are written once and a run can be resumed.

    Args:
        options: `dataset` may be a data frame, whose columns `dataset.label`, `dataset.client` and so on name, or a
            pair of arrays: samples [n, ...] and labels [n]. An index with a name counts as a column.

    Raises:
        OptionError: for data of another kind, and for arrays whose shapes do not fit.
    """
    passed_data: Any = options.get("dataset")
    data_frame, replaced_options = passed_data, dict[str, Any]()
    if (
        isinstance(passed_data, tuple | list)
        and len(passed_data) == 2
        and not all(isinstance(e, str) for e in passed_data)
    ):
        data_frame, replaced_options = _tabulate_samples(*passed_data)
    elif isinstance(passed_data, str | Mapping | tuple | list | None):
        return dict(options)
    elif not hasattr(passed_data, "to_parquet"):
        allowed_text = "the name of a choice, a data frame, or a pair (x, y) of samples [n, ...] and labels [n]"
        raise ranges.range_error("dataset", allowed_text, type(passed_data).__name__)
    elif any(k is not None for k in data_frame.index.names):
        data_frame = data_frame.reset_index()
    table_bytes, paths_node = io.BytesIO(), options.get("paths")
    try:
        data_frame.to_parquet(table_bytes, index=False)
    except (TypeError, ValueError, NotImplementedError, OverflowError) as error:
        raise OptionError(f"dataset can't be written as a Parquet table: {error.args[-1]}. {COLUMN_REMEDY}") from error
    logs_folder = options.get(
        "paths.logs", paths_node.get("logs", "logs") if isinstance(paths_node, Mapping) else "logs"
    )
    check_writable_folder("paths.logs", str(logs_folder) if isinstance(logs_folder, Path) else logs_folder)
    table_hash = hashlib.blake2b(table_bytes.getbuffer(), digest_size=6).hexdigest()
    table_folder = Path(logs_folder).absolute() / TABLES_FOLDER / table_hash
    if not (table_folder / "train.parquet").exists():
        table_folder.mkdir(parents=True, exist_ok=True)
        write_atomically(table_folder / "train.parquet", table_bytes.getbuffer())
    new_options = {
        "dataset": "folder",
        "dataset.path": table_folder,
        "dataset.test_share": TEST_SHARE,
        **replaced_options,
    }
    return {**new_options, **{k: v for k, v in options.items() if k != "dataset"}}


def _tabulate_samples(x: Any, y: Any) -> "tuple[pd.DataFrame, dict[str, Any]]":  # noqa: ANN401 - what a user passes
    """Return samples and labels as a frame, and the options of `dataset=folder` that describe it.

    Args:
        x: samples, [n, ...].
        y: labels, [n].

    Raises:
        OptionError: the shapes do not fit, or there are no samples.
    """
    import pandas as pd

    try:
        x, y = np.asarray(x), np.asarray(y)
    except ValueError as error:  # samples of different lengths
        raise ranges.range_error(
            "dataset", "arrays (x, y), or lists that NumPy converts to them", str(error)
        ) from error
    if x.ndim < 2 or y.shape != x.shape[:1] or not len(y):
        shapes_text = f"shapes {x.shape}, {y.shape}"
        raise ranges.range_error("dataset", "samples [n, ...] and labels [n], as (x, y)", shapes_text)
    if x.ndim == 2:
        return pd.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])]).assign(label=y), {}
    sample_table = pd.DataFrame({"x": list(x.reshape(len(x), -1)), LABEL_COLUMN: y})
    return sample_table, {"dataset.features": "x", "dataset.shape": list(x.shape[1:])}
