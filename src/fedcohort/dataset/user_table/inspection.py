"""Inspect the columns of a user's table, and propose their roles: label, series, client, inputs."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import list_names
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table import column_kinds
from fedcohort.errors import DataError

LABELS = ("label", "labels", "target", "class", "y", "outcome", "diagnosis", "category", "species", "activity")
CLIENTS = (  # alone or before "id", as in user_id, userId or "User ID"
    *("client", "user", "subject", "site", "hospital", "owner", "device", "person", "writer", "patient", "participant"),
    *("customer", "clinic", "centre", "center", "station", "sensor"),
)
SCALAR_KINDS = ("number", "boolean", "text", "date")  # kinds of columns with one value in each row
MAX_CLASSES = 100  # of a column that is proposed for the labels
ROWS_PER_CLIENT = 20  # of clients that are made
MIN_SAMPLES = 10  # of a client, below which small clients are proposed to be left out or pooled
MAX_WINDOW = 50  # rows
MAX_NAMES = 4  # classes, columns or values that a reason names


@dataclass(frozen=True)
class Decision:
    """A decision about the data that a user must take, with a proposal.

    Attributes:
        topic: label, client, test, ...
        options: the values that are proposed, by option; empty if the default or the typed values are right.
        reason: why, and what else is possible.
    """

    topic: str
    options: Mapping[str, object]
    reason: str


@dataclass
class Inspection:
    """A user's tables, and the roles of their columns, which are proposed one after the other.

    Attributes:
        frames: the tables, the training rows first.
        typed: the values of the options that the user has typed, by option.
        is_cut: whether the test part is cut of the training rows.
        roles: role of each column that is no input, by column.
        window: rows of a sample.
    """

    frames: Sequence[Frame]
    typed: Mapping[str, str]
    is_cut: bool
    roles: dict[str, str] = field(default_factory=dict)
    window: int = 1

    def __post_init__(self) -> None:
        """Find the kind and the number of different values of each column."""
        self.train = self.frames[0]
        self.kinds = {name: column_kinds.kind_of(self.train, name) for name in self.train.names}
        scalars = [name for name, kind in self.kinds.items() if kind in SCALAR_KINDS]
        self.levels = {name: column_kinds.count_levels(self.train, name) for name in scalars}

    def describe(self, name: str) -> tuple[str, str, str]:
        """Return a column's name, kind and details."""
        column, column_kind = self.train.column(name), self.kinds[name]
        details = [self.roles[name]] if name in self.roles else []
        if empty := int(arrow_columns.empty_cells(column).sum()):
            details.append(f"{empty:,} cells empty")
        if column_kind == "text":
            values = [value[:20] for value in pc.unique(column).to_pylist() if value and value.strip()]
            details += [description for description, _ in column_kinds.recognise_text_numbers(self.train, name)]
            details.append(f"{self.levels[name]:,} values, as {', '.join(map(repr, values[:MAX_NAMES]))}")
        elif column_kind == "number" and arrow_columns.is_text(column.type):
            details.append(f"{int(np.isnan(arrow_columns.numbers(column)).sum()) - empty:,} cells hold no number")
        return name, column_kind, "; ".join(details)

    def decide_roles(self) -> Iterator[Decision]:
        """Yield the decisions on the roles of columns, in the order in which they depend on each other."""
        yield self._label()
        yield from self._series()
        yield from self._ids()
        yield from self._client()
        if self.is_cut:
            is_long = "series" in self.roles.values()
            cut_text = "windows is cut, of the series that training windows are of" if is_long else "rows is cut"
            yield Decision("test", {"dataset.test_share": 0.2}, f"there is no test table: a fifth of the {cut_text}")

    def _label(self) -> Decision:
        label = self.typed.get("dataset.label")
        label, *alternatives = self._rank_labels() if label is None else [label]
        self.roles[label] = "label"
        if label not in self.levels:
            return Decision("label", {}, f"dataset.label={label}, as typed")
        counts: Counter[str] = Counter()
        for entry in pc.value_counts(self.train.column(label)).to_pylist():
            counts[str(entry["values"]).strip()] += entry["counts"]
        frequent_values = ", ".join(f"{value} ({n:,})" for value, n in counts.most_common(MAX_NAMES))
        also = f"; also possible: {', '.join(alternatives[:MAX_NAMES])}" if alternatives else ""
        return Decision("label", self._label_options(label), f"{self.levels[label]} classes: {frequent_values}{also}")

    def _rank_labels(self) -> list[str]:
        """Return the columns that may hold labels, the most likely one first. Raises `DataError` for none."""
        max_classes = min(MAX_CLASSES, max(2, self.train.table.num_rows // 5))
        candidates = [name for name, n in self.levels.items() if 2 <= n <= max_classes and self._may_be_label(name)]
        label_names = [name for label in LABELS for name in candidates if name.casefold() == label]
        label_names += [name for name in candidates if set(_split_name(name)) & (set(LABELS) - {"y"})]
        other_names = [name for name in reversed(candidates) if not (_is_client(name) or _is_id(name))]
        if not (ranked := list(dict.fromkeys([*label_names, *other_names]))):
            raise DataError(
                f"{self.train.where}: no column can hold labels (texts or whole numbers with 2 to {max_classes} "
                f"values): name one with dataset.label=NAME; the columns are {list_names(self.train.names)}. "
                "Numbers with fractions are no labels: models are classifiers"
            )
        return ranked

    def _may_be_label(self, name: str) -> bool:
        column = self.train.column(name)
        if pa.types.is_floating(column.type):  # 0.0 and 1.0 are labels only in a column that is called so
            is_whole = pc.and_(pc.is_finite(column), pc.equal(column, pc.floor(column)))
            return name.casefold() in LABELS and bool(pc.all(is_whole).as_py())
        return self.kinds[name] in ("text", "boolean") or pa.types.is_integer(column.type)

    def _label_options(self, label: str) -> dict[str, object]:
        """Return the options for a label; whole numbers that leave some out need the number of classes."""
        options: dict[str, object] = {} if label == "label" else {"dataset.label": label}
        column = self.train.column(label)
        if self.kinds[label] == "number" and self._may_be_label(label):
            smallest, largest = pc.min(column).as_py(), int(pc.max(column).as_py())
            if smallest >= 0 and largest + 1 != self.levels[label]:
                options["dataset.n_classes"] = largest + 1
        return options

    def _series(self) -> Iterator[Decision]:
        label = next(name for name, role in self.roles.items() if role == "label")
        if "dataset.window" in self.typed or (columns := column_kinds.find_series(self.train, label)) is None:
            return
        series, time = columns
        lengths = np.bincount(column_kinds.number_blocks(self.train, [series, label]))
        self.roles |= {series: "series", time: "time"}
        self.window = int(min(MAX_WINDOW, max(2, np.median(lengths) // 2)))
        options: dict[str, object] = {"dataset.series": series, "dataset.window": self.window}
        size = _span(lengths.min(), lengths.max())
        reason = f"one row per time step {time!r}: {len(lengths):,} series of {size} rows"
        yield Decision("series", options, f"{reason}; a sample is {self.window} rows")

    def _client(self) -> Iterator[Decision]:
        name = self.typed.get("dataset.client")
        if name is not None and name not in self.levels:
            return  # a column that does not exist is an error when the table is loaded
        candidates = [name for name in self.levels if _is_client(name) and self._may_be_client(name)]
        name = name or next(iter(candidates), None)
        window = int(self.typed.get("dataset.window") or self.window)
        n_rows = self.train.table.num_rows // window
        if name is None:
            n = int(min(50, max(2, n_rows * (0.8 if self.is_cut else 1) // ROWS_PER_CLIENT)))
            options: dict[str, object] = {"clients": n, "cohort": _cohort(n)}
            reason = f"no column of clients is recognised: {n} clients are made, each a random sample"
            yield Decision("client", options, f"{reason}; dataset.client=NAME takes each value of a column as a client")
            return
        self.roles[name] = "client"
        sizes = np.sort(np.array([entry["counts"] for entry in pc.value_counts(self.train.column(name)).to_pylist()]))
        training = sizes * (0.8 if self.is_cut else 1) / window
        n_small, n = int((training < MIN_SAMPLES).sum()), len(sizes)
        options = {"dataset.client": name}
        reason = f"{n:,} clients of {_span(sizes[0], sizes[-1])} rows"
        if n_small:
            options["dataset.min_client_samples"] = MIN_SAMPLES
            n -= n_small
            if 2 * n_small > len(sizes):
                options["dataset.pool_small"] = True
                n += int(training[training < MIN_SAMPLES].sum() // (2 * MIN_SAMPLES))
            reason += f", {n_small:,} of them with fewer than {MIN_SAMPLES} training samples"
        yield Decision("client", {**options, "cohort": _cohort(n)}, reason)

    def _may_be_client(self, name: str) -> bool:
        """Return whether a column of texts or whole numbers has several values, with two or more rows on average.

        Where the name says that it holds clients, one repeated value is enough.
        """
        is_free = name not in self.roles and not pa.types.is_floating(self.train.column(name).type)
        rows = self.train.table.num_rows
        return is_free and 2 <= self.levels[name] <= (rows - 1 if _is_client(name) else rows // 2)

    def _ids(self) -> Iterator[Decision]:
        """Propose to leave out columns of numbers that identify rows, and the time of a series."""
        rows = self.train.table.num_rows
        ids = [name for name, role in self.roles.items() if role == "time" and self.kinds[name] == "number"]
        for name, n in self.levels.items():
            is_integer = pa.types.is_integer(self.train.column(name).type)
            if n == rows and is_integer and (_is_id(name) or _is_client(name)) and name not in self.roles:
                ids.append(name)
        if ids:
            self.roles |= dict.fromkeys(ids, "left out")
            yield Decision("left out", {"dataset.leave_out": ids}, "these numbers identify rows")


def _split_name(name: str) -> list[str]:
    """Split a column's name into lower-case parts: `userId`, `user_id` and `User ID` are user and id."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold().replace("_", " ").split()


def _is_client(name: str) -> bool:
    name_parts = _split_name(name)
    return bool(name_parts) and name_parts[0] in CLIENTS and name_parts[1:] in ([], ["id"])


def _is_id(name: str) -> bool:
    return bool(name_parts := _split_name(name)) and name_parts[-1] in ("id", "nr", "no", "index", "row")


def _span(smallest: int, largest: int) -> str:
    return f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"


def _cohort(n_clients: int) -> int:
    """Return the number of clients of a round: 10, or half of them where there are fewer than 20."""
    return max(1, min(10, n_clients // 2))
