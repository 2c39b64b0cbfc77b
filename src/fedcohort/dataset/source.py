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

Columns = Mapping[str, str]  # the table's name of a column by the data set's


def check_columns(columns: Columns | None, *known: Sequence[str]) -> None:
    """Check the option `columns`. Raises `OptionError`.

    known: for each column of the dataset its possible names, of which only one may be renamed.
    """
    if columns is None:
        return
    names = list(dict.fromkeys(name for same in known for name in same))
    if not isinstance(columns, Mapping) or not columns or set(columns) - set(names):
        allowed = f"null, or what the table calls one or more of {', '.join(names)}, as {{{names[0]}: other}}"
        raise ranges.refuse("columns", allowed, columns)
    for ours, theirs in columns.items():
        text(f"columns.{ours}", theirs)
        if twice := [other for other in columns if other != ours and columns[other] == theirs]:
            raise ranges.refuse(f"columns.{ours}", f"another column than columns.{twice[0]}", theirs)
    for same in known:
        if len(both := [name for name in same if name in columns]) > 1:
            raise ranges.refuse(
                "columns",
                f"a mapping with only one of {' and '.join(both)}, which are two names of the same column",
                dict(columns),
            )


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
        columns: the tables' names of columns, by the dataset's; None where they are the same.
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
    named = {theirs: f"dataset.columns.{ours}={theirs}" for ours, theirs in renamed.items()}
    return [replace(frame, renamed=renamed, named=named) for frame in frames]


def has_column(frame: Frame, name: str) -> bool:
    """Whether the table has the data set's column `name`, or `dataset.columns` says that it does."""
    return name in frame.renamed or (name in frame.names and name not in frame.renamed.values())


def column_of(frame: Frame, *names: str) -> str:
    """What the table calls the column that goes by one of `names`: as `dataset.columns` says, else the first it has.

    Raises `DataError` where it has none.
    """
    renamed = [frame.renamed[name] for name in names if name in frame.renamed]
    found = [name for name in (renamed or names) if name in frame.names and (renamed or has_column(frame, name))]
    if found:
        return found[0]
    columns = list_names(frame.names)
    if renamed:
        raise frame.error(renamed[0], f" has no column {renamed[0]!r}; it has {columns}")
    wanted = " or ".join(repr(name) for name in names)
    way_out = f"dataset.columns={{{names[0]}: OTHER}} says what else it is called"
    raise DataError(f"{frame.option}: {frame.where} has no column {wanted}; it has {columns}; {way_out}")
