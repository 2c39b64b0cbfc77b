"""Find the tables of a dataset with fixed columns, in a folder or on the Hugging Face hub, and map their column names.

    dataset.columns={image: picture, label: class}    the tables' names of `image` and `label`

`column_of` returns the table's name of a column; errors use it, too, and begin with the option that names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedcohort import ranges
from fedcohort.dataset.files import file_of, part_of
from fedcohort.dataset.hub import splits
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.table import Frame, text
from fedcohort.errors import DataError

Columns = Mapping[str, str]  # the table's name of a column, by the dataset's name for it


def check_columns(columns: Columns | None, *synonyms: Sequence[str]) -> None:
    """Check the option `columns`. Raises `OptionError`.

    synonyms: for each column of the dataset its possible names, of which only one may be renamed.
    """
    if columns is None:
        return
    names = list(dict.fromkeys(name for column_names in synonyms for name in column_names))
    if not isinstance(columns, Mapping) or not columns or set(columns) - set(names):
        allowed = f"null, or what the table calls one or more of {', '.join(names)}, as {{{names[0]}: other}}"
        raise ranges.refuse("columns", allowed, columns)
    for name, table_name in columns.items():
        text(f"columns.{name}", table_name)
        if duplicates := [key for key in columns if key != name and columns[key] == table_name]:
            raise ranges.refuse(f"columns.{name}", f"another column than columns.{duplicates[0]}", table_name)
    for column_names in synonyms:
        if len(renamed := [name for name in column_names if name in columns]) > 1:
            allowed = f"a mapping with only one of {' and '.join(renamed)}, which are two names of the same column"
            raise ranges.refuse("columns", allowed, dict(columns))


def frames_of(
    name: str,
    path: str | None,
    hub: str | None,
    columns: Columns | None,
    parts: Sequence[str] = ("train", "test"),
    perhaps: Sequence[str] = (),
) -> list[Frame]:
    """Return the tables of a folder, or of the hub.

    Args:
        name: the dataset.
        path: a local folder, or None for the hub.
        hub: the name on the hub.
        columns: the tables' names of columns, by the dataset's; None if they are the same.
        parts: parts that are required.
        perhaps: names of an optional part, of which the first that exists is taken.

    Raises:
        DataError: for missing tables, and where both `path` and `hub` are None.
    """
    if path is not None:
        optional = [part for part in perhaps if file_of(path, part)][:1]
        frames = [part_of(path, part) for part in (*parts, *optional)]
    elif hub is not None:
        frames = splits(hub, parts, perhaps)[: len(parts) + 1]
    else:
        files = " and ".join(f"{part}.parquet" for part in parts)
        raise DataError(
            f"dataset={name} needs dataset.path, a folder with {files} (fedcohort prepare makes them of raw files), or "
            "dataset.hub, the name of data with the same columns on the Hugging Face hub"
        )
    renamed = columns or {}
    named = {table_name: f"dataset.columns.{name}={table_name}" for name, table_name in renamed.items()}
    return [replace(frame, renamed=renamed, named=named) for frame in frames]


def has_column(frame: Frame, name: str) -> bool:
    """Return whether the table has the dataset's column `name`, or `dataset.columns` renames it."""
    return name in frame.renamed or (name in frame.names and name not in frame.renamed.values())


def column_of(frame: Frame, *names: str) -> str:
    """Return the table's name of the column that has one of `names` in the dataset.

    It is the name in `dataset.columns`, otherwise the first of `names` that the table has. Raises `DataError` where
    there is no such column.
    """
    renamed = [frame.renamed[name] for name in names if name in frame.renamed]
    candidates = [name for name in (renamed or names) if name in frame.names and (renamed or has_column(frame, name))]
    if candidates:
        return candidates[0]
    columns = list_names(frame.names)
    if renamed:
        raise frame.error(renamed[0], f" has no column {renamed[0]!r}; it has {columns}")
    expected = " or ".join(repr(name) for name in names)
    way_out = f"set dataset.columns={{{names[0]}: OTHER}} if it has another name"
    raise DataError(f"{frame.option}: {frame.where} has no column {expected}; it has {columns}; {way_out}")
