"""fedcohort data NAME or PATH [group=choice or option=value ...] [out=FOLDER]: load data and show them; no training.

    fedcohort data mydata.csv              your own file or folder: prints what to decide and the complete command
    fedcohort data mnist dataset.path=/data/mnist partition=dirichlet clients=20 seed=3

PATH is a table, a folder of tables or a folder of images. The command shows how each file is written, the columns, the
proposed options with the reason for each, and the resulting federation. Options that are typed replace proposed ones.

NAME is a dataset; it is downloaded if it is not in the cache. The options are those of a run, and so are the clients:
equal data, seed and options give equal clients. The command shows samples, classes and clients, differences to the
original, and the checksum that a run's info.json has. logs/data/<name>.png shows the classes of each client.

out=FOLDER writes a page about the scenario to README.md and partition.png: the options, a hash of the clients of all
samples, FedDiverse's six metrics, and the clients.
"""

import difflib
import logging
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedcohort import ranges
from fedcohort.command import scenario
from fedcohort.console.terminal import make_console
from fedcohort.data.federation import Federation
from fedcohort.errors import OptionError
from fedcohort.host import disk, messages
from fedcohort.record.observer import RunInfo
from fedcohort.record.overview import list_run_facts
from fedcohort.report.figure import partition, style
from fedcohort.report.render import render
from fedcohort.startup import check, command_line, components, compose, hydra_errors, options
from fedcohort.startup.load import DATA_GROUPS, find_data_seed, load_federation
from fedcohort.startup.overrides import format_override_value
from fedcohort.startup.run_info import describe_federation_data

if TYPE_CHECKING:
    from fedcohort.dataset.user_table.propose import DatasetProposal

OUT_OPTION_PREFIX = "out="
LABEL_WIDTH = 12  # of the labels at the left
MAX_SHOWN_CLIENTS = 20  # in the table
MAX_NAMED_CLASSES = 3  # of a client that are named
START_TABLE_GROUPS = ("dataset", "heterogeneity", *DATA_GROUPS)
PRINTED_FACTS = ("clients", "classes", "labels", "label skew", "label noise", "imbalance", "hub", "inputs")

log = logging.getLogger("fedcohort")


def main(arguments: Sequence[str]) -> int:
    """Describe a dataset. For a user's files, propose options first. Return the exit code 0.

    Args:
        arguments: name of the dataset or path of the files, and options.

    Raises:
        OptionError: an argument is invalid.
        DataError: the data can't be read.
    """
    if not arguments or "=" in arguments[0]:
        raise OptionError("name a dataset, a file or a folder: fedcohort data digits")
    messages.log_to_terminal()
    typed_choices = [argument for argument in arguments[1:] if not argument.startswith(OUT_OPTION_PREFIX)]
    out_folder = next(
        (argument.removeprefix(OUT_OPTION_PREFIX) for argument in arguments if argument.startswith(OUT_OPTION_PREFIX)),
        None,
    )
    if out_folder is not None:
        options.check_writable_folder("out", out_folder)
    configs = Path.cwd() / "configs"
    if not is_data_path(arguments[0]):
        check_dataset_name(arguments[0], configs)
        _show_federation([f"dataset={arguments[0]}", *typed_choices], out_folder, arguments[0], configs)
        return 0
    command_line.check_typed_arguments(typed_choices, configs)
    proposal, typed_options = propose_options(arguments[0], typed_choices)
    column_name_width = min(30, max(len(n) for n, _, _ in proposal.column_descriptions)) + 2
    proposal_text = render("proposal.txt.j2", proposal=proposal, width=column_name_width, spell=format_override_value)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in proposal_text.splitlines()) + "\n")
    sys.stdout.flush()
    _show_federation(typed_options, out_folder, Path(arguments[0]).stem or "folder", configs)
    sys.stdout.write(f"\nRun it with\n{format_training_command(typed_options)}\n")
    return 0


def _show_federation(typed_options: Sequence[str], out_folder: str | None, picture_name: str, configs: Path) -> None:
    """Load the data, print their description, and write a picture or a page of them.

    Args:
        typed_options: the options, dataset=NAME first.
        out_folder: folder of the page with text and picture; None for the picture only.
        picture_name: name of the picture without its suffix.
        configs: folder of the config groups.
    """
    command_line.check_typed_arguments(typed_options, configs)
    composition = compose.compose_run([typed_options[0], "cohort=1", *typed_options[1:]], configs)
    federation, info = describe_split(composition, typed_options)
    info = info if out_folder is None else replace(info, name=scenario.format_scenario_options(typed_options))
    from rich.table import Table  # only once there is something to show
    from rich.text import Text

    output_console = make_console()
    for notice in federation.notices():
        log.warning("%s", notice)
    labelled_facts = list(list_data_facts(federation, info))
    for fact_label, fact_text in labelled_facts:
        output_console.print(f"{fact_label:<{LABEL_WIDTH}}{fact_text}", markup=False, soft_wrap=True)
    client_table = Table("client", "samples", "training samples", "classes", "most frequent classes", box=None)
    for client_row in list_client_rows(federation, MAX_SHOWN_CLIENTS):
        client_table.add_row(*map(Text, client_row))
    output_console.print(client_table)
    if (hidden_clients := federation.n_clients - MAX_SHOWN_CLIENTS) > 0:
        output_console.print(f"... and {hidden_clients:,} more", markup=False)
    page_folder = info.folder if out_folder is None else Path(out_folder)
    with disk.convert_disk_errors(page_folder):
        if out_folder is not None:
            client_rows, page_path = list_client_rows(federation, scenario.MAX_TABLE_CLIENTS), page_folder / "README.md"
            scenario.write_scenario_page(page_folder, federation, info, labelled_facts, client_rows, configs)
        else:
            page_folder.mkdir(parents=True, exist_ok=True)
            page_path = page_folder / f"{picture_name}.png"
            style.save_figure(partition.draw_partition(info), page_path)
    sys.stdout.write(f"{page_path}\n")


def describe_split(composition: compose.Composition, typed_options: Sequence[str]) -> tuple[Federation, RunInfo]:
    """Return the data after the split among clients, and their description as at the start of a run.

    Raises the errors that a run with these options would raise.

    Args:
        composition: the composed config.
        typed_options: the options as typed, for the description.
    """
    check.check_options(composition)
    components_by_group = {group: components.make_component(composition, group) for group in DATA_GROUPS}
    check.check_client_column(composition, components_by_group["partition"])
    federation = load_federation(composition, components_by_group)
    return federation, RunInfo(
        folder=Path(composition.config["paths"]["logs"]).absolute() / "data",
        name=" ".join(typed_options),
        choices={group: c for group, c in composition.choices.items() if group in START_TABLE_GROUPS},
        config=composition.config,
        config_hash="",
        seed=find_data_seed(composition.config),
        commit="",
        dirty=False,
        versions={},
        tags={"hub": federation.revision, "inputs": federation.inputs},
        expected_s=np.zeros(federation.n_clients),
        n_params=0,
        rounds=0,
        start=0,
        **describe_federation_data(federation),
    )


def list_data_facts(federation: Federation, info: RunInfo) -> Iterator[tuple[str, str]]:
    """Yield label and text of each fact about the dataset that is shown above the table of clients.

    Args:
        federation: the data after the split.
        info: their description as at the start of a run.
    """
    run_facts = dict(list_run_facts(info))
    n_train, n_val = len(federation.train.y), len(federation.val.y)
    client_test_text = f"{len(federation.test.y):,} of them in clients' test sets"
    yield "data", f"{info.name}  (checksum {federation.checksum}, seed {info.seed})"
    server_val_text = f"{len(federation.server_val.y):,} on the server"
    yield "samples", f"{n_train:,} for training, {n_val:,} for clients' validation, {server_val_text}"
    yield "test", f"{len(federation.server_test.y):,} samples, {client_test_text}"
    sample_shape = " x ".join(str(axis_length) for axis_length in federation.server_test.x.shape[1:])
    yield "sample", f"{sample_shape}, {str(federation.server_test.x.dtype).removeprefix('torch.')}"
    test_labels, n_classes = federation.targets.strata(federation.server_test.y.numpy(), federation.n_classes)
    if n_classes > 1:
        yield "per class", _format_spread(np.bincount(test_labels, minlength=n_classes), "test samples")
    else:
        yield "target", f"one of {federation.n_classes:,}, at each position of a sample"
    for fact_label in PRINTED_FACTS:
        if fact_label in run_facts:
            yield fact_label, run_facts[fact_label]


def list_client_rows(federation: Federation, max_clients: int) -> Iterator[tuple[str, ...]]:
    """Yield a row of the table, as texts, for each of the first `max_clients` clients of `federation`."""
    class_names = federation.class_names or range(federation.class_counts.shape[1])
    for k, counts in enumerate(federation.class_counts[:max_clients]):
        class_order = np.argsort(-counts, kind="stable")[: min(MAX_NAMED_CLASSES, np.count_nonzero(counts))]
        largest_classes = ", ".join(f"{class_names[c]} {100 * counts[c] / counts.sum():.0f} %" for c in class_order)
        size_texts = (f"{counts.sum():,}", f"{federation.n_train[k]:,}", str(np.count_nonzero(counts)))
        client_name = "" if federation.client_names is None else f" {federation.client_names[k]}"
        yield (f"{k}{client_name}", *size_texts, largest_classes)


def _format_spread(counts: np.ndarray, counted_noun: str) -> str:
    spread_text = f"{counts.min():,} / {np.median(counts):,.0f} / {counts.max():,}"
    return f"{spread_text} {counted_noun} (min / median / max)"


def is_data_path(argument: str) -> bool:
    """Return whether `argument` is the path of a user's data, and not a choice of the group dataset.

    It is a path if it looks like one or exists. A choice of another group, such as ../model/x, is no path.
    """
    looks_like_path = "/" in argument or argument.startswith((".", "~")) or re.search(r"\.\w+$", argument) is not None
    return not argument.startswith("../model") and (looks_like_path or Path(argument).exists())


def check_dataset_name(name: str, configs: Path) -> None:
    """Raise `OptionError` with the most similar names if `name` is no choice of the group dataset in `configs`."""
    dataset_names = hydra_errors.list_choices(configs, "dataset")
    if name not in dataset_names:
        similar_names = difflib.get_close_matches(
            name, [*dataset_names, *(path.name for path in Path.cwd().glob("[!.]*"))]
        )
        hint_text = f"did you mean {' or '.join(similar_names)}? " if similar_names else ""
        allowed_text = f"a file or folder in {Path.cwd()}, or one of the datasets {', '.join(dataset_names)}"
        raise OptionError(f"{hint_text}{ranges.range_error('NAME or PATH', allowed_text, name)}")


def propose_options(data_path: str, arguments: Sequence[str]) -> "tuple[DatasetProposal, list[str]]":
    """Return the proposal for the files of `data_path`, and the options of a run: those proposed and those typed.

    Args:
        data_path: file or folder of the user's data.
        arguments: the options as typed.

    Raises:
        DataError: no table can be read.
    """
    from fedcohort.dataset.user_table.propose import propose_options  # noqa: PLC0415 - imports pyarrow

    typed_options = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    proposal = propose_options(data_path, {k: v.strip("'\"") for k, v in typed_options.items()})
    proposed_values = {"dataset": "folder", "dataset.path": data_path, **proposal.options}
    new_options = {k: v for k, v in proposed_values.items() if k not in typed_options}
    return proposal, [*(f"{k}={format_override_value(k, v)}" for k, v in new_options.items()), *arguments]


def format_training_command(arguments: Sequence[str]) -> str:
    """Return the command that trains with the options `arguments`, quoted for a shell."""
    quoted_arguments = [f'"{a}"' if "'" in a and not set(a) & set('"$`\\!') else shlex.quote(a) for a in arguments]
    return " ".join(["python train.py", *quoted_arguments])
