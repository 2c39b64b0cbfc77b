"""Propose the options of `dataset=folder` for a user's files, with the reason for each (`fedcohort data PATH`)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import list_names
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.column_kinds import MAX_AUTO_LEVELS, count_levels, kind_of, scale_notices
from fedcohort.dataset.user_table.find import find_files, load_tables
from fedcohort.errors import DataError

LABELS = ("label", "labels", "target", "class", "y", "outcome", "diagnosis", "category", "species", "activity")
CLIENTS = (  # alone or before "id", as in user_id, userId or "User ID"
    *("client", "user", "subject", "site", "hospital", "owner", "device", "person", "writer", "patient", "participant"),
    *("customer", "clinic", "centre", "center", "station", "sensor"),
)
IDS = ("id", "nr", "no", "index", "row")  # last part of the name of a column that identifies rows
SCALARS = ("number", "boolean", "text", "date")  # kinds of columns with one value in each row
MAX_CLASSES = 100  # of a column that is proposed for the labels
ROWS_PER_CLIENT = 20  # of clients that are made
MIN_SAMPLES = 10  # of a client, below which small clients are proposed to be left out or pooled
TRAINING_SHARE = 0.8  # of the rows, where a test part is cut


@dataclass(frozen=True)
class Decision:
    """A decision about the data, with a proposal.

    Attributes:
        topic: label, client, test, ...
        options: the values that are proposed, by option; empty if the default or the typed values are right.
        reason: why.
    """

    topic: str
    options: Mapping[str, object]
    reason: str


@dataclass(frozen=True)
class Proposal:
    """The content of a user's files, and the options that are proposed.

    Attributes:
        files: a line for each table.
        columns: name, kind and details of each column of the training table.
        decisions: what must be decided.
    """

    files: Sequence[str]
    columns: Sequence[tuple[str, str, str]]
    decisions: Sequence[Decision]

    @property
    def options(self) -> dict[str, object]:
        """All proposed values, by option."""
        return {name: value for decision in self.decisions for name, value in decision.options.items()}


def propose(path: str, typed: Mapping[str, str]) -> Proposal:
    """Inspect the files of `path`.

    Nothing is proposed for options that the user has typed, `typed`. Raises `DataError` if no table can be read, and
    where no column can hold the labels.
    """
    files = find_files(path)
    is_cut = "test" not in files and not ("images" in files and (files["images"] / "test").is_dir())
    frames = load_tables(path, is_cut, True, typed.get("dataset.decimal", "auto"))
    inspection = Inspection(frames, typed, is_cut)
    lines = [", ".join([f"{frame.where}: {frame.table.num_rows:,} rows", *frame.notes]) for frame in frames]
    decisions = [
        replace(decision, options={name: value for name, value in decision.options.items() if name not in typed})
        for decision in inspection.decide()
    ]
    return Proposal(lines, [inspection.describe(name) for name in frames[0].names], decisions)


@dataclass
class Inspection:
    """A user's tables, and the roles of their columns, which are proposed one after the other.

    Attributes:
        frames: the tables, the training rows first.
        typed: the values of the options that the user has typed, by option.
        is_cut: whether the test part is cut of the training rows.
        roles: role of each column that is no input, by column.
    """

    frames: Sequence[Frame]
    typed: Mapping[str, str]
    is_cut: bool
    roles: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the kind of each column, and the number of its different values."""
        self.train = self.frames[0]
        self.rows = self.train.table.num_rows
        self.kinds = {name: kind_of(self.train, name) for name in self.train.names}
        scalars = [name for name, kind in self.kinds.items() if kind in SCALARS]
        self.levels = {name: count_levels(self.train, name) for name in scalars}

    def describe(self, name: str) -> tuple[str, str, str]:
        """Return a column's name, kind and details."""
        details = [self.roles[name]] if name in self.roles else []
        if empty := int(arrow_columns.empty_cells(self.train.column(name)).sum()):
            details.append(f"{empty:,} cells empty")
        if self.kinds[name] == "text":
            details.append(f"{self.levels[name]:,} values")
        return name, self.kinds[name], "; ".join(details)

    def decide(self) -> Iterator[Decision]:
        """Yield the decisions, in the order in which they depend on each other."""
        yield self._label()
        ids = [name for name in self.levels if self._is_id(name)]
        if ids:
            self.roles |= dict.fromkeys(ids, "left out")
            yield Decision("left out", {"dataset.leave_out": ids}, "these numbers identify rows")
        yield from self._client()
        if self.is_cut:
            yield Decision("test", {"dataset.test_share": 0.2}, "there is no test table: a fifth of the rows is cut")
        yield from self._inputs()
        yield from self._missing()

    def _label(self) -> Decision:
        """Propose the labels: a column that is called so, or the last one that can hold classes. Raises `DataError`."""
        max_classes = min(MAX_CLASSES, max(2, self.rows // 5))
        candidates = [name for name, n in self.levels.items() if 2 <= n <= max_classes and self._may_be_label(name)]
        named = [name for label in LABELS for name in candidates if name.casefold() == label]
        named += [name for name in candidates if set(_split_name(name)) & (set(LABELS) - {"y"})]
        unnamed = [name for name in reversed(candidates) if not _names_ids(name)]
        label = self.typed.get("dataset.label") or next(iter([*named, *unnamed]), None)
        if label is None:
            raise DataError(
                f"{self.train.where}: no column can hold labels (texts or whole numbers with 2 to {max_classes} "
                f"values): name one with dataset.label=NAME; the columns are {list_names(self.train.names)}. "
                "Numbers with fractions are no labels: models are classifiers"
            )
        self.roles[label] = "label"
        if label not in self.levels:  # a column that does not exist is an error when the table is loaded
            return Decision("label", {}, f"dataset.label={label}, as typed")
        options: dict[str, object] = {} if label == "label" else {"dataset.label": label}
        if self.kinds[label] == "number" and self._may_be_label(label):
            low, high = (function(self.train.column(label)).as_py() for function in (pc.min, pc.max))
            if low >= 0 and int(high) + 1 != self.levels[label]:  # whole numbers that leave some out
                options["dataset.n_classes"] = int(high) + 1
        return Decision("label", options, f"{self.levels[label]} classes")

    def _may_be_label(self, name: str) -> bool:
        column = self.train.column(name)
        if pa.types.is_floating(column.type):  # 0.0 and 1.0 are labels only in a column that is called so
            is_whole = pc.and_(pc.is_finite(column), pc.equal(column, pc.floor(column)))
            return name.casefold() in LABELS and bool(pc.all(is_whole).as_py())
        return self.kinds[name] in ("text", "boolean") or pa.types.is_integer(column.type)

    def _is_id(self, name: str) -> bool:
        """Return whether a column of whole numbers identifies rows: a different one in each, and a name of ids."""
        is_unique = self.levels[name] == self.rows and pa.types.is_integer(self.train.column(name).type)
        return is_unique and _names_ids(name) and name not in self.roles

    def _client(self) -> Iterator[Decision]:
        """Propose a column of clients by its name, with what becomes of small clients; else clients that are made."""
        name = self.typed.get("dataset.client") or next(filter(self._may_be_client, self.levels), None)
        share = (TRAINING_SHARE if self.is_cut else 1) / int(self.typed.get("dataset.window") or 1)
        if name is None:
            n = int(min(50, max(2, self.rows * share // ROWS_PER_CLIENT)))
            reason = f"no column of clients is recognised: {n} clients are made; dataset.client=NAME names a column"
            yield Decision("client", {"clients": n, "cohort": _cohort(n)}, reason)
            return
        if name not in self.levels:  # a column that does not exist is an error when the table is loaded
            return
        self.roles[name] = "client"
        sizes = np.array([entry["counts"] for entry in pc.value_counts(self.train.column(name)).to_pylist()])
        small = sizes[sizes * share < MIN_SAMPLES]
        n, options = len(sizes) - len(small), dict[str, object]({"dataset.client": name})
        if len(small):
            options["dataset.min_client_samples"] = MIN_SAMPLES
        if 2 * len(small) > len(sizes):
            options["dataset.pool_small"] = True
            n += int(small.sum() * share // (2 * MIN_SAMPLES))
        reason = f"{len(sizes):,} clients, {len(small):,} of them with fewer than {MIN_SAMPLES} training samples"
        yield Decision("client", {**options, "cohort": _cohort(n)}, reason)

    def _may_be_client(self, name: str) -> bool:
        """Return whether a column is called as clients are, and one of its texts or whole numbers is repeated."""
        is_free = name not in self.roles and not pa.types.is_floating(self.train.column(name).type)
        return _is_client(name) and is_free and 2 <= self.levels[name] < self.rows

    def _inputs(self) -> Iterator[Decision]:
        """Propose the columns that are inputs, how they are encoded, and whether they are standardised."""
        columns: dict[str, list[str]] = {}
        for name, kind in self.kinds.items():
            if name not in self.roles:
                columns.setdefault("number" if kind == "boolean" else kind, []).append(name)
        numbers, images, lists = (columns.get(kind, []) for kind in ("number", "images", "lists"))
        if images or (lists and not numbers):
            features = images[:1] or lists
            is_folder = bool(images) and self.train.names == ["image", "label"]
            options: dict[str, object] = {} if is_folder else {"dataset.features": features}
            options |= {"dataset.scale": 255, "model": "cnn"} if images else {}
            yield Decision("inputs", options, f"columns of {'images' if images else 'lists'}: {list_names(features)}")
            return
        if categories := [name for name in columns.get("text", []) if 2 <= self.levels[name] <= MAX_AUTO_LEVELS]:
            yield Decision("categories", {"dataset.categories": categories}, "one number for each value")
        if dates := columns.get("date", []):
            yield Decision("dates", {"dataset.dates": dates}, "as days since 1970")
        x = np.nan_to_num(self.train.numbers(numbers, gaps=True))
        if dates or (numbers and list(scale_notices(x, numbers))):
            yield Decision("scale", {"dataset.standardise": True}, "features are far from unit scale")

    def _missing(self) -> Iterator[Decision]:
        """Propose what becomes of missing cells: labels and clients can't be filled, so that their rows are dropped."""
        incomplete = []
        for name, kind in self.kinds.items():
            is_used = name in self.roles or kind != "text" or 2 <= self.levels[name] <= MAX_AUTO_LEVELS
            if kind not in SCALARS or self.roles.get(name) == "left out" or not is_used:
                continue
            for column in (frame.column(name) for frame in self.frames if name in frame.names):
                is_feature = kind == "number" and name not in self.roles and arrow_columns.may_be_numbers(column)
                missing = np.isnan(arrow_columns.numbers(column)) if is_feature else arrow_columns.empty_cells(column)
                incomplete += [name] if missing.any() else []
        if incomplete:
            is_dropped = any(name in self.roles for name in incomplete)
            reason = f"cells hold no value: {list_names(list(dict.fromkeys(incomplete)))}; "
            reason += "drops these rows" if is_dropped else "takes the mean (drop leaves the rows out)"
            yield Decision("missing", {"dataset.missing": "drop" if is_dropped else "mean"}, reason)


def _split_name(name: str) -> list[str]:
    """Split a column's name into lower-case parts: `userId`, `user_id` and `User ID` are user and id."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold().replace("_", " ").split()


def _is_client(name: str) -> bool:
    parts = _split_name(name)
    return bool(parts) and parts[0] in CLIENTS and parts[1:] in ([], ["id"])


def _names_ids(name: str) -> bool:
    return _is_client(name) or bool(set(_split_name(name)[-1:]) & set(IDS))


def _cohort(n_clients: int) -> int:
    """Return the number of clients of a round: 10, or half of them where there are fewer than 20."""
    return max(1, min(10, n_clients // 2))
