"""Datasets with fixed columns: read their tables from a folder or the Hugging Face hub, and map their column names.

    dataset.columns={image: picture, label: class}    the tables' names of `image` and `label`

`column_of` returns the table's name of a column. Error messages use it, too, and begin with the option that names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from fedcohort import ranges
from fedcohort.dataset.base import Dataset
from fedcohort.dataset.files import find_part, read_part
from fedcohort.dataset.hub import load_splits
from fedcohort.dataset.messages import list_names
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError

Columns = Mapping[str, str]  # the table's name of a column, by the dataset's name for it


@dataclass(frozen=True)
class TableDataset(Dataset):
    """A dataset with fixed columns.

    Attributes:
        name: the dataset, as in dataset=NAME.
        column_names: for each column its possible names, of which the first that a table has is read.
        path: a local folder, or None for the hub.
        hub: the name on the hub, or None if there is a folder.
        columns: the tables' names of columns, by the dataset's names; None if they are the same.
    """

    name: ClassVar[str]
    column_names: ClassVar[Sequence[Sequence[str]]]

    path: str | None
    hub: str | None
    columns: Columns | None

    def __post_init__(self) -> None:
        ranges.text("path", self.path, allow_null=True)
        ranges.text("hub", self.hub, allow_null=True)
        check_columns(self.columns, *self.column_names)

    def frames(self, parts: Sequence[str] = ("train", "test"), optional_parts: Sequence[str] = ()) -> list[Frame]:
        """Return the tables of the folder, or of the hub.

        Args:
            parts: parts that are required.
            optional_parts: names of an optional part, of which the first that exists is added.

        Raises:
            DataError: a table is missing, or both `path` and `hub` are None.
        """
        if self.path is not None:
            present = [part_name for part_name in optional_parts if find_part(self.path, part_name)][:1]
            frames = [read_part(self.path, part_name) for part_name in (*parts, *present)]
        elif self.hub is not None:
            frames = load_splits(self.hub, parts, optional_parts)[: len(parts) + 1]
        else:
            files = " and ".join(f"{part_name}.parquet" for part_name in parts)
            raise DataError(
                f"dataset={self.name} needs dataset.path, a folder with {files} (fedcohort prepare and docs/data.md "
                "convert raw files), or dataset.hub, the name of data with the same columns on the Hugging Face hub"
            )
        renamed = self.columns or {}
        options = {table_name: f"dataset.columns.{name}={table_name}" for name, table_name in renamed.items()}
        return [replace(frame, renamed=renamed, column_options=options) for frame in frames]


def check_columns(columns: Columns | None, *synonyms: Sequence[str]) -> None:
    """Check the option `columns`. Raises `OptionError`.

    synonyms: for each column of the dataset its possible names, of which only one may be renamed.
    """
    if columns is None:
        return
    names = list(dict.fromkeys(name for column_names in synonyms for name in column_names))
    if not isinstance(columns, Mapping) or not columns or set(columns) - set(names):
        allowed = f"null, or what the table calls one or more of {', '.join(names)}, as {{{names[0]}: other}}"
        raise ranges.range_error("columns", allowed, columns)
    for name, table_name in columns.items():
        ranges.text(f"columns.{name}", table_name)
    ranges.check_distinct_columns({f"columns.{name}": table_name for name, table_name in columns.items()})
    for column_names in synonyms:
        if len(renamed := [name for name in column_names if name in columns]) > 1:
            allowed = f"a mapping with only one of {' and '.join(renamed)}, which are two names of the same column"
            raise ranges.range_error("columns", allowed, dict(columns))


def has_column(frame: Frame, name: str) -> bool:
    """Return whether the table has the dataset's column `name`, or `dataset.columns` renames it."""
    return name in frame.renamed or (name in frame.names and name not in frame.renamed.values())


def column_of(frame: Frame, *names: str) -> str:
    """Return the table's name of the column that has one of `names` in the dataset.

    It is the name in `dataset.columns`, otherwise the first of `names` that the table has. Raises `DataError` where
    there is no such column.
    """
    name = next((name for name in names if name in frame.renamed), None)
    name = name or next((name for name in names if has_column(frame, name)), None)
    if name is not None:
        frame.check_name(frame.renamed.get(name, name))
        return frame.renamed.get(name, name)
    expected = " or ".join(repr(name) for name in names)
    what = f"{frame.option}: {frame.where} has no column {expected}; it has {list_names(frame.names)}"
    raise DataError(f"{what}; set dataset.columns={{{names[0]}: OTHER}} if it has another name")
