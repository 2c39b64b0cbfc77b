"""Inspect the columns of a user's table, and propose their roles: label, series, client, inputs."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import join_names
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table import column_kinds
from fedcohort.errors import DataError

LABEL_NAMES = ("label", "labels", "target", "class", "y", "outcome", "diagnosis", "category", "species", "activity")
CLIENT_COLUMNS = (  # alone or before "id", as in user_id, userId or "User ID"
    *("client", "user", "subject", "site", "hospital", "owner", "device", "person", "writer", "patient", "participant"),
    *("customer", "clinic", "centre", "center", "station", "sensor"),
)
SCALAR_KINDS = ("number", "boolean", "text", "date")  # kinds of columns with one value in each row
MAX_CLASSES = 100  # most classes of a column that is proposed for the labels
ROWS_PER_CLIENT = 20  # of simulated clients, where no column says who owns a row
MIN_CLIENT_SAMPLES = 10  # of a client, below which small clients are proposed to be left out or pooled
MAX_WINDOW_ROWS = 50  # rows
MAX_LISTED_NAMES = 4  # most classes, columns or values that a reason names


@dataclass(frozen=True)
class DataDecision:
    """A decision that a user must take about the data, with a proposal.

    Attributes:
        decision_topic: what is decided, such as "label", "client" or "test".
        options: the proposed values, by option; empty if the defaults or the values that the user typed are right.
        reason: why these values are proposed, and what else is possible.
    """

    decision_topic: str
    options: Mapping[str, object]
    reason: str


@dataclass
class TableInspection:
    """A user's tables, and the roles of their columns, which are proposed one after the other.

    Attributes:
        frames: the tables, the training rows first.
        overrides: the values of the options that the user has typed, by option.
        draws_test_set: whether the test part is taken from the training rows, as there is no test table.
        roles: role of each column that is no input ("label", "client", ...), by column; grows with each decision.
        window: rows of a sample, 1 unless rows are time steps of series.
    """

    frames: Sequence[Frame]
    overrides: Mapping[str, str]
    draws_test_set: bool
    roles: dict[str, str] = field(default_factory=dict)
    window: int = 1

    def __post_init__(self) -> None:
        """Find the kind of each column, and the number of different values of columns with one value in each row."""
        self.train = self.frames[0]
        self.kinds = {name: column_kinds.find_column_kind(self.train, name) for name in self.train.names}
        scalar_columns = [name for name, column_kind in self.kinds.items() if column_kind in SCALAR_KINDS]
        self.levels = {name: column_kinds.count_column_levels(self.train, name) for name in scalar_columns}

    def describe_column(self, name: str) -> tuple[str, str, str]:
        """Return the name of a column, its kind such as "text", and details such as empty cells and example values."""
        cells, column_kind = self.train.column(name), self.kinds[name]
        column_details = [self.roles[name]] if name in self.roles else []
        if n_empty := int(arrow_columns.find_empty_cells(cells).sum()):
            column_details.append(f"{n_empty:,} cells empty")
        if column_kind == "text":
            examples = [cell_text[:20] for cell_text in pc.unique(cells).to_pylist() if cell_text and cell_text.strip()]
            column_details += [description for description, _ in column_kinds.recognise_text_numbers(self.train, name)]
            column_details.append(
                f"{self.levels[name]:,} values, such as {', '.join(map(repr, examples[:MAX_LISTED_NAMES]))}"
            )
        elif column_kind == "number" and arrow_columns.is_text_type(cells.type):
            column_details.append(
                f"{int(np.isnan(arrow_columns.as_float64(cells)).sum()) - n_empty:,} cells hold no number"
            )
        return name, column_kind, "; ".join(column_details)

    def propose_roles(self) -> Iterator[DataDecision]:
        """Yield the decisions on label, series, row numbers, clients and test part, in the order of their dependence.

        Raises `DataError` if no column can hold labels.
        """
        yield self._propose_label_column()
        yield from self._propose_series_columns()
        yield from self._propose_row_id_columns()
        yield from self._propose_client_column()
        if self.draws_test_set:
            has_series = "series" in self.roles.values()
            samples_text = "windows, of the same series as the training windows, is" if has_series else "rows is"
            reason = f"there is no test table: a fifth of the {samples_text} taken for testing"
            yield DataDecision("test", {"dataset.test_share": 0.2}, reason)

    def _propose_label_column(self) -> DataDecision:
        label_column = self.overrides.get("dataset.label")
        label_column, *other_labels = self._rank_label_columns() if label_column is None else [label_column]
        self.roles[label_column] = "label"
        if label_column not in self.levels:
            return DataDecision("label", {}, f"dataset.label={label_column}, as typed")
        label_counts: Counter[str] = Counter()
        for label_count in pc.value_counts(self.train.column(label_column)).to_pylist():
            label_counts[str(label_count["values"]).strip()] += label_count["counts"]
        frequent_labels_text = ", ".join(
            f"{label} ({n_rows_of_label:,})" for label, n_rows_of_label in label_counts.most_common(MAX_LISTED_NAMES)
        )
        other_labels_text = f"; also possible: {', '.join(other_labels[:MAX_LISTED_NAMES])}" if other_labels else ""
        reason = f"{self.levels[label_column]} classes: {frequent_labels_text}{other_labels_text}"
        return DataDecision("label", self._propose_label_options(label_column), reason)

    def _rank_label_columns(self) -> list[str]:
        """Return the columns that may hold labels, the most likely one first. Raises `DataError` for none."""
        max_classes = min(MAX_CLASSES, max(2, self.train.table.num_rows // 5))
        label_columns = [
            name for name, n_levels in self.levels.items() if 2 <= n_levels <= max_classes and self._may_be_label(name)
        ]
        likely_columns = [name for label_name in LABEL_NAMES for name in label_columns if name.casefold() == label_name]
        likely_columns += [name for name in label_columns if set(_split_column_name(name)) & (set(LABEL_NAMES) - {"y"})]
        other_names = [name for name in reversed(label_columns) if not (_is_client_name(name) or _is_row_id_name(name))]
        if not (ranked_columns := list(dict.fromkeys([*likely_columns, *other_names]))):
            raise DataError(
                f"{self.train.origin}: no column can hold labels (texts or whole numbers with 2 to {max_classes} "
                f"values): name one with dataset.label=NAME; the columns are {join_names(self.train.names)}. "
                "Numbers with fractions are no labels: models are classifiers"
            )
        return ranked_columns

    def _may_be_label(self, name: str) -> bool:
        cells = self.train.column(name)
        if pa.types.is_floating(cells.type):  # 0.0 and 1.0 are labels only in a column that is called so
            is_whole_number = pc.and_(pc.is_finite(cells), pc.equal(cells, pc.floor(cells)))
            return name.casefold() in LABEL_NAMES and bool(pc.all(is_whole_number).as_py())
        return self.kinds[name] in ("text", "boolean") or pa.types.is_integer(cells.type)

    def _propose_label_options(self, label_column: str) -> dict[str, object]:
        """Return `dataset.label` for the column `label_column`, and `dataset.n_classes` if its numbers have gaps."""
        label_options: dict[str, object] = {} if label_column == "label" else {"dataset.label": label_column}
        cells = self.train.column(label_column)
        if self.kinds[label_column] == "number" and self._may_be_label(label_column):
            min_label, max_label = pc.min(cells).as_py(), int(pc.max(cells).as_py())
            if min_label >= 0 and max_label + 1 != self.levels[label_column]:
                label_options["dataset.n_classes"] = max_label + 1
        return label_options

    def _propose_series_columns(self) -> Iterator[DataDecision]:
        label_column = next(name for name, role in self.roles.items() if role == "label")
        series_and_time = column_kinds.find_series_and_time_columns(self.train, label_column)
        if "dataset.window" in self.overrides or series_and_time is None:
            return
        series_column, time_column = series_and_time
        series_lengths = np.bincount(column_kinds.find_row_blocks(self.train, [series_column, label_column]))
        self.roles |= {series_column: "series", time_column: "time"}
        self.window = int(min(MAX_WINDOW_ROWS, max(2, np.median(series_lengths) // 2)))
        series_options: dict[str, object] = {"dataset.series": series_column, "dataset.window": self.window}
        series_lengths_text = _format_count_range(series_lengths.min(), series_lengths.max())
        reason = f"one row per time step {time_column!r}: {len(series_lengths):,} series of {series_lengths_text} rows"
        yield DataDecision("series", series_options, f"{reason}; a sample is {self.window} rows")

    def _propose_client_column(self) -> Iterator[DataDecision]:
        client_column = self.overrides.get("dataset.client")
        if client_column is not None and client_column not in self.levels:
            return  # a column that does not exist is an error when the table is loaded
        client_columns = [name for name in self.levels if _is_client_name(name) and self._may_be_client_column(name)]
        client_column = client_column or next(iter(client_columns), None)
        window = int(self.overrides.get("dataset.window") or self.window)
        n_samples = self.train.table.num_rows // window
        if client_column is None:
            proposed_n_clients = int(
                min(50, max(2, n_samples * (0.8 if self.draws_test_set else 1) // ROWS_PER_CLIENT))
            )
            options: dict[str, object] = {
                "clients": proposed_n_clients,
                "cohort": _propose_cohort_size(proposed_n_clients),
            }
            reason = f"no column of clients is recognised: {proposed_n_clients} clients are made, each a random sample"
            yield DataDecision(
                "client", options, f"{reason}; dataset.client=NAME takes each value of a column as a client"
            )
            return
        self.roles[client_column] = "client"
        client_sizes = np.sort(pc.value_counts(self.train.column(client_column)).field("counts").to_numpy())
        client_train_sizes = client_sizes * (0.8 if self.draws_test_set else 1) / window
        n_small_clients, proposed_n_clients = int((client_train_sizes < MIN_CLIENT_SAMPLES).sum()), len(client_sizes)
        options = {"dataset.client": client_column}
        reason = f"{proposed_n_clients:,} clients of {_format_count_range(client_sizes[0], client_sizes[-1])} rows"
        if n_small_clients:
            options["dataset.min_client_samples"] = MIN_CLIENT_SAMPLES
            proposed_n_clients -= n_small_clients
            if 2 * n_small_clients > len(client_sizes):
                options["dataset.pool_small"] = True
                proposed_n_clients += int(
                    client_train_sizes[client_train_sizes < MIN_CLIENT_SAMPLES].sum() // (2 * MIN_CLIENT_SAMPLES)
                )
            reason += f", {n_small_clients:,} of them with fewer than {MIN_CLIENT_SAMPLES} training samples"
        yield DataDecision("client", {**options, "cohort": _propose_cohort_size(proposed_n_clients)}, reason)

    def _may_be_client_column(self, name: str) -> bool:
        """Return whether the column `name` can say who owns a row: each value has two rows or more on average.

        Where the column's name says that it holds clients, one value with two rows is enough.
        """
        is_unassigned_column = name not in self.roles and not pa.types.is_floating(self.train.column(name).type)
        n_rows = self.train.table.num_rows
        return is_unassigned_column and 2 <= self.levels[name] <= (n_rows - 1 if _is_client_name(name) else n_rows // 2)

    def _propose_row_id_columns(self) -> Iterator[DataDecision]:
        """Propose to leave out columns of row numbers, and the column of the time steps of series."""
        n_rows = self.train.table.num_rows
        row_id_columns = [name for name, role in self.roles.items() if role == "time" and self.kinds[name] == "number"]
        for name, n_levels in self.levels.items():
            is_integer_column = pa.types.is_integer(self.train.column(name).type)
            is_identifier_name = _is_row_id_name(name) or _is_client_name(name)
            if n_levels == n_rows and is_integer_column and is_identifier_name and name not in self.roles:
                row_id_columns.append(name)
        if row_id_columns:
            self.roles |= dict.fromkeys(row_id_columns, "left out")
            yield DataDecision("left out", {"dataset.leave_out": row_id_columns}, "these numbers identify rows")


def _split_column_name(column_name: str) -> list[str]:
    """Return the lower-case parts of `column_name`: `userId`, `user_id` and `User ID` are user and id."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column_name).casefold().replace("_", " ").split()


def _is_client_name(name: str) -> bool:
    name_parts = _split_column_name(name)
    return bool(name_parts) and name_parts[0] in CLIENT_COLUMNS and name_parts[1:] in ([], ["id"])


def _is_row_id_name(name: str) -> bool:
    return bool(name_parts := _split_column_name(name)) and name_parts[-1] in ("id", "nr", "no", "index", "row")


def _format_count_range(min_count: int, max_count: int) -> str:
    return f"{min_count:,}" if min_count == max_count else f"{min_count:,} to {max_count:,}"


def _propose_cohort_size(n_clients: int) -> int:
    """Return the proposed number of clients per round: 10, or half of `n_clients` if there are fewer than 20."""
    return max(1, min(10, n_clients // 2))
