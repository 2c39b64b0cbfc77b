"""Look at the columns of a user's table, and give them roles: label, series, client, inputs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import cells
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.columns import count_levels, kind_of, text_numbers
from fedcohort.dataset.user_table.windows import find_series, number_blocks
from fedcohort.errors import DataError

LABELS = "label labels target class y outcome diagnosis category species activity"
CLIENTS = "client client_id user user_id subject subject_id site site_id hospital owner device device_id person writer"
CLIENTS += " patient patient_id participant customer customer_id clinic centre center station sensor sensor_id"
MAX_CLASSES = 100  # of a column that is proposed for the labels
ROWS_PER_CLIENT = 20  # of clients that are made
MIN_SAMPLES = 10  # of a client, below which small clients are proposed to be left out or pooled
MAX_WINDOW = 50  # rows
MAX_NAMES = 4  # classes, columns or values that a reason names


@dataclass(frozen=True)
class OpenQuestion:
    """What must be decided about the data.

    Attributes:
        topic: label, client, test, ...
        options: the values that are proposed, by option; empty where the default or the typed values are right.
        reason: why, and what else is possible.
    """

    topic: str
    options: Mapping[str, object]
    reason: str


@dataclass
class Look:
    """The tables, and the roles of their columns as they are decided one after the other.

    Attributes:
        frames: the tables, the training rows first.
        typed: the values of typed options.
        is_cut: whether the test part is cut of the training rows.
        roles: columns that are no inputs, by their role.
    """

    frames: Sequence[Frame]
    typed: Mapping[str, str]
    is_cut: bool
    roles: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the kind and the number of different values of each column."""
        self.train = self.frames[0]
        self.kinds = {name: kind_of(self.train, name) for name in self.train.names}
        scalars = [name for name, kind in self.kinds.items() if kind in ("number", "truth value", "text", "date")]
        self.levels = {name: count_levels(self.train, name) for name in scalars}

    def describe(self, name: str) -> tuple[str, str, str]:
        """Return a column's name, kind and details."""
        column, details = self.train.column(name), []
        if name in self.roles:
            details.append(self.roles[name])
        if empty := int(cells.empty(column).sum()):
            details.append(f"{empty:,} cells empty")
        if self.kinds[name] == "text":
            details += [what for what, _ in text_numbers(self.train, name)]
            details.append(f"{self.levels[name]:,} values, as {self._example(name)}")
        elif self.kinds[name] == "number" and cells.is_text(column.type):
            bad_cells = int(np.isnan(cells.numbers(column)).sum()) - empty
            details.append(f"{bad_cells:,} cells hold no number")
        return name, self.kinds[name], "; ".join(details)

    def _example(self, name: str) -> str:
        values = pc.unique(self.train.column(name)).slice(0, MAX_NAMES).to_pylist()
        return ", ".join(repr(str(value)[:20]) for value in values if value is not None)

    def decide_roles(self) -> Iterator[OpenQuestion]:
        """Yield the decisions on the roles of columns, in the order in which they depend on each other."""
        yield self._label()
        yield from self._series()
        yield from self._ids()
        yield from self._client()
        if self.is_cut:
            yield OpenQuestion(
                "test", {"dataset.test_share": 0.2}, "there is no test table: a fifth of the rows is cut"
            )

    def _label(self) -> OpenQuestion:
        if (label := self.typed.get("dataset.label")) is not None:
            self.roles[label] = "label"
            return OpenQuestion("label", {}, f"dataset.label={label}, as typed")
        max_classes = min(MAX_CLASSES, max(2, self.train.table.num_rows // 5))
        candidates = [name for name, n in self.levels.items() if 2 <= n <= max_classes and self._may_be_label(name)]
        named = [name for word in LABELS.split() for name in candidates if name.casefold() == word]
        unnamed = [name for name in reversed(candidates) if not _is_client(name)]
        if not (ranked := [*named, *unnamed]):
            raise DataError(
                f"{self.train.where}: no column can hold labels (texts or whole numbers with 2 to {max_classes} "
                f"values): name one with dataset.label=NAME; the columns are {list_names(self.train.names)}"
            )
        label = ranked[0]
        self.roles[label] = "label"
        counts = pc.value_counts(self.train.column(label)).to_pylist()
        counts = sorted(counts, key=lambda entry: -entry["counts"])[:MAX_NAMES]
        largest = ", ".join(f"{str(entry['values']).strip()} ({entry['counts']:,})" for entry in counts)
        possible = [name for name in dict.fromkeys(ranked) if name != label]
        also = f"; also possible: {', '.join(possible[:MAX_NAMES])}" if possible else ""
        return OpenQuestion("label", self._label_options(label), f"{self.levels[label]} classes: {largest}{also}")

    def _may_be_label(self, name: str) -> bool:
        column = self.train.column(name)
        return self.kinds[name] in ("text", "truth value") or pa.types.is_integer(column.type)

    def _label_options(self, label: str) -> dict[str, object]:
        """Return the options for a label; whole numbers that leave some out need the number of classes."""
        options: dict[str, object] = {} if label == "label" else {"dataset.label": label}
        column = self.train.column(label)
        if pa.types.is_integer(column.type):
            low, high = pc.min(column).as_py(), pc.max(column).as_py()
            if low >= 0 and high + 1 != self.levels[label]:
                options["dataset.n_classes"] = high + 1
        return options

    def _series(self) -> Iterator[OpenQuestion]:
        label = next(name for name, role in self.roles.items() if role == "label")
        columns = None if "dataset.window" in self.typed else find_series(self.train, label)
        if columns is None:
            return
        series, time = columns
        lengths = np.bincount(number_blocks(self.train, [series, label]))
        self.roles |= {series: "series", time: "time"}
        window = int(min(MAX_WINDOW, max(2, np.median(lengths) // 2)))
        options: dict[str, object] = {"dataset.series": series, "dataset.window": window}
        reason = (
            f"one row per time step {time!r}: {len(lengths):,} series of {lengths.min():,} to {lengths.max():,} rows"
        )
        yield OpenQuestion("series", options, f"{reason}; a sample is {window} rows")

    def _client(self) -> Iterator[OpenQuestion]:
        name = self.typed.get("dataset.client")
        candidates = [name for name in self.levels if _is_client(name) and self._may_be_client(name)]
        name = name or next(iter(candidates), None)
        window = int(str(self.typed.get("dataset.window") or self._window()))
        n_rows = self.train.table.num_rows // window
        if name is None or name not in self.levels:
            n = int(min(50, max(2, n_rows * (0.8 if self.is_cut else 1) // ROWS_PER_CLIENT)))
            options: dict[str, object] = {"clients": n, "cohort": _cohort(n)}
            yield OpenQuestion(
                "client", options, f"no column of clients is recognised: {n} clients are made, each a random sample"
            )
            return
        self.roles[name] = "client"
        sizes = np.sort(np.array([entry["counts"] for entry in pc.value_counts(self.train.column(name)).to_pylist()]))
        training = sizes * (0.8 if self.is_cut else 1) / window
        n_small, n = int((training < MIN_SAMPLES).sum()), len(sizes)
        options = {"dataset.client": name}
        reason = f"{n:,} clients of {sizes[0]:,} to {sizes[-1]:,} rows"
        if n_small:
            options["dataset.min_client_samples"] = MIN_SAMPLES
            n -= n_small
            if 2 * n_small > len(sizes):
                options["dataset.pool_small"] = True
                n += int(training[training < MIN_SAMPLES].sum() // (2 * MIN_SAMPLES))
            reason += f", {n_small:,} of them with fewer than {MIN_SAMPLES} training samples"
        yield OpenQuestion("client", {**options, "cohort": _cohort(n)}, reason)

    def _may_be_client(self, name: str) -> bool:
        """Return whether a column of texts or whole numbers has several values, with two or more rows on average."""
        is_free = name not in self.roles and not pa.types.is_floating(self.train.column(name).type)
        return is_free and 2 <= self.levels[name] <= self.train.table.num_rows // 2

    def _window(self) -> int:
        return 1 if "series" not in self.roles.values() else MAX_WINDOW

    def _ids(self) -> Iterator[OpenQuestion]:
        """Propose to leave out columns of numbers that identify rows, and the time of a series."""
        rows = self.train.table.num_rows
        ids = [name for name, role in self.roles.items() if role == "time" and self.kinds[name] == "number"]
        for name, n in self.levels.items():
            column = self.train.column(name)
            is_id = re.search(r"(^|_)(id|nr|no|index|row)$", name.casefold()) is not None
            if n == rows and is_id and pa.types.is_integer(column.type) and name not in self.roles:
                ids.append(name)
        if ids:
            self.roles |= dict.fromkeys(ids, "left out")
            yield OpenQuestion("left out", {"dataset.leave_out": ids}, "these numbers identify rows")


def _is_client(name: str) -> bool:
    return name.casefold() in CLIENTS.split()


def _cohort(n_clients: int) -> int:
    """Return the number of clients of a round: 10, or half of them where there are fewer than 20."""
    return max(1, min(10, n_clients // 2))
