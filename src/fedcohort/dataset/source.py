"""Datasets with fixed columns: read their tables from a folder or the Hugging Face hub, and map their column names.

    dataset.columns={image: picture, label: class}    the tables' names of `image` and `label`

`find_column` returns the table's name of a column. Error messages use it, too, and begin with the option that names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from fedcohort import ranges
from fedcohort.dataset.base import Dataset
from fedcohort.dataset.files import find_part_file, read_part_table
from fedcohort.dataset.hub import load_hub_splits
from fedcohort.dataset.messages import join_names
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError

ColumnRenames = Mapping[str, str]  # the table's name of a column, by the dataset's name for it


@dataclass(frozen=True)
class TableDataset(Dataset):
    """A dataset whose columns are known, in a folder of tables or on the Hugging Face hub.

    Attributes:
        name: name of the dataset, as in dataset=NAME.
        column_names: for each column its possible names, of which the first that a table has is read.
        path: local folder; None to read the hub.
        hub: name on the Hugging Face hub; None to read a folder.
        columns: names in the tables of renamed columns, by the dataset's names; None if no column is renamed.
    """

    name: ClassVar[str]
    column_names: ClassVar[Sequence[Sequence[str]]]

    path: str | None
    hub: str | None
    columns: ColumnRenames | None

    def __post_init__(self) -> None:
        ranges.text("path", self.path, allow_null=True)
        ranges.text("hub", self.hub, allow_null=True)
        check_column_renames(self.columns, *self.column_names)

    def read_frames(self, parts: Sequence[str] = ("train", "test"), optional_parts: Sequence[str] = ()) -> list[Frame]:
        """Return the tables of the folder, or of the hub.

        Args:
            parts: names of the required parts.
            optional_parts: possible names of an optional part; the first one that exists is added.

        Raises:
            DataError: a table is missing, or both `path` and `hub` are None.
        """
        if self.path is not None:
            existing_parts = [split_name for split_name in optional_parts if find_part_file(self.path, split_name)][:1]
            frames = [read_part_table(self.path, split_name) for split_name in (*parts, *existing_parts)]
        elif self.hub is not None:
            frames = load_hub_splits(self.hub, parts, optional_parts)[: len(parts) + 1]
        else:
            file_names = " and ".join(f"{split_name}.parquet" for split_name in parts)
            raise DataError(
                f"dataset={self.name} needs dataset.path, a folder with {file_names} (fedcohort prepare and "
                "docs/data.md convert raw files), or dataset.hub, data with the same columns on the Hugging Face hub"
            )
        column_renames = self.columns or {}
        option_by_column = {
            name_in_table: f"dataset.columns.{column}={name_in_table}"
            for column, name_in_table in column_renames.items()
        }
        return [replace(frame, column_renames=column_renames, option_by_column=option_by_column) for frame in frames]


def check_column_renames(column_renames: ColumnRenames | None, *synonyms_by_column: Sequence[str]) -> None:
    """Raise `OptionError` for an invalid value of the option `column_renames`, which renames columns.

    Args:
        column_renames: value of the option, the table's name of each renamed column by the dataset's name.
        synonyms_by_column: possible names of each column of the dataset, of which only one may be renamed.
    """
    if column_renames is None:
        return
    known_columns = list(dict.fromkeys(column for synonyms in synonyms_by_column for column in synonyms))
    if not isinstance(column_renames, Mapping) or not column_renames or set(column_renames) - set(known_columns):
        allowed_text = (
            f"null, or a mapping of {', '.join(known_columns)} to names in the table, as {{{known_columns[0]}: other}}"
        )
        raise ranges.range_error("columns", allowed_text, column_renames)
    for column, name_in_table in column_renames.items():
        ranges.text(f"columns.{column}", name_in_table)
    ranges.check_distinct_columns(
        {f"columns.{column}": name_in_table for column, name_in_table in column_renames.items()}
    )
    for synonyms in synonyms_by_column:
        if len(renamed_columns := [column for column in synonyms if column in column_renames]) > 1:
            renamed_columns_text = " and ".join(renamed_columns)
            allowed_text = f"a mapping with only one of {renamed_columns_text}, which are two names of the same column"
            raise ranges.range_error("columns", allowed_text, dict(column_renames))


def frame_has_column(frame: Frame, column: str) -> bool:
    """Return whether the table `frame` has the dataset's column `column`, possibly renamed by `dataset.columns`."""
    return column in frame.column_renames or (column in frame.names and column not in frame.column_renames.values())


def find_column(frame: Frame, *synonyms: str) -> str:
    """Return the table's name of the column that the dataset calls by one of several names.

    If the option `dataset.columns` renames one of the names, that column is returned. Otherwise it is the first of the
    names that the table has.

    Args:
        frame: the table, with the option's value.
        synonyms: the dataset's names of the column.

    Raises:
        DataError: the table has no such column.
    """
    column = next((column for column in synonyms if column in frame.column_renames), None)
    column = column or next((column for column in synonyms if frame_has_column(frame, column)), None)
    if column is not None:
        frame.require_column(frame.column_renames.get(column, column))
        return frame.column_renames.get(column, column)
    expected_names = " or ".join(repr(column) for column in synonyms)
    message_start = f"{frame.option}: {frame.origin} has no column {expected_names}; it has {join_names(frame.names)}"
    raise DataError(f"{message_start}; set dataset.columns={{{synonyms[0]}: OTHER}} if it has another name")
