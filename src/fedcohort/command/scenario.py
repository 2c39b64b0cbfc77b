"""The page of a scenario: a federation, described so that readers can check that they have the same one.

It is README.md, from the template `report/templates/scenario.md.j2`, and partition.png.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from fedcohort.command.methods import read_yaml_comment
from fedcohort.data import skew
from fedcohort.data.federation import Federation
from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import partition, style
from fedcohort.report.render import render

PAGE_FILE, PICTURE_FILE = "README.md", "partition.png"
METRIC_LABELS = {"ci": "class imbalance", "ai": "attribute imbalance", "sc": "spurious correlation"}
MACHINE_OPTIONS = ("dataset.path", "paths.logs")  # options whose values other machines don't share
MAX_TABLE_CLIENTS = 200  # on a page
MAX_GROUP_PAIRS = 12  # of class and attribute, in a row of the clients' table


def format_scenario_options(typed_options: Sequence[str]) -> str:
    """Return the options of a scenario as text, with FOLDER in place of paths of this machine.

    `typed_options` are the options as typed.
    """
    option_pairs = [(argument.split("=")[0], argument) for argument in typed_options]
    return " ".join(f"{k}=FOLDER" if k in MACHINE_OPTIONS else argument for k, argument in option_pairs)


def write_scenario_page(
    page_folder: Path,
    federation: Federation,
    info: RunInfo,
    labelled_facts: Iterable[tuple[str, str]],
    client_rows: Iterable[Sequence[str]],
    configs: Path,
) -> None:
    """Write the page of a scenario into `page_folder`, which is created if it does not exist.

    Args:
        page_folder: folder of the page.
        federation: the data.
        info: the data as a run describes them.
        labelled_facts: label and text of each fact about the dataset.
        client_rows: rows of the table of clients.
        configs: folder of the config groups; the comment in its yaml describes the chosen `heterogeneity`.
    """
    disk.reject_foreign_files(page_folder, (PAGE_FILE, PICTURE_FILE), PAGE_FILE, "```bash\nfedcohort data ")
    page_folder.mkdir(parents=True, exist_ok=True)
    dataset, *options = info.name.split()
    column_heads: Sequence[str] = ("client", "samples", "training samples", "classes", "most frequent classes")
    preset_path = configs / "heterogeneity" / f"{info.choices.get('heterogeneity')}.yaml"
    counts = federation.group_counts
    if counts is not None:
        column_heads, client_rows = _count_by_attribute(counts.reshape(federation.n_clients, federation.n_classes, -1))
    page_text = render(
        "scenario.md.j2",
        title=" ".join(argument for argument in (dataset, *options) if argument.split("=")[0] not in MACHINE_OPTIONS),
        about=read_yaml_comment(preset_path) if preset_path.is_file() else "",
        command=f"fedcohort data {dataset.removeprefix('dataset=')} {' '.join(options)}".rstrip(),
        facts=[("client map", f"`{federation.client_map}`"), *labelled_facts],
        metrics=list(list_metrics(info.skew)),
        picture=PICTURE_FILE,
        by_attribute=counts is not None,
        heads=column_heads,
        clients=list(client_rows),
        more=federation.n_clients - MAX_TABLE_CLIENTS,
    )
    write_atomically(page_folder / PAGE_FILE, page_text)  # first: `reject_foreign_files` recognises the picture by it
    style.save_figure(partition.draw_partition(info), page_folder / PICTURE_FILE)


def list_metrics(metric_values: Mapping[str, float]) -> Iterator[tuple[str, str, str]]:
    """Yield name, value on the pooled data, and mean over clients of each of FedDiverse's metrics that is known.

    `metric_values` are the metrics by name, as from `skew_metrics`.
    """
    for metric, metric_label in METRIC_LABELS.items():
        if f"global_{metric}" in metric_values:
            yield metric_label, f"{metric_values[f'global_{metric}']:.4f}", f"{metric_values[f'client_{metric}']:.4f}"


def _count_by_attribute(group_counts: np.ndarray) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the column heads and the rows of a table with a client's samples and its three skew metrics in each row.

    Args:
        group_counts: training samples by client, class and attribute, [n_clients, n_classes, n_attributes].
    """
    group_pairs = [(y, a) for y in range(group_counts.shape[1]) for a in range(group_counts.shape[2])][:MAX_GROUP_PAIRS]
    metric_triplets = skew.skew_triplets(group_counts)
    client_rows: list[Sequence[str]] = [
        (str(k), *(str(group_counts[k, y, a]) for y, a in group_pairs), *(f"{m:.3f}" for m in metric_triplets[k]))
        for k in range(min(MAX_TABLE_CLIENTS, len(group_counts)))
    ]
    return ("client", *(f"{y}, {a}" for y, a in group_pairs), "CI", "AI", "SC"), client_rows
