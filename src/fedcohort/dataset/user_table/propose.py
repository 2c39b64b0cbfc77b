"""Inspect a user's files, and propose the options of `dataset=folder` with the reason for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import ProblemList, list_names
from fedcohort.dataset.user_table.column_kinds import MAX_AUTO_LEVELS, scale_notices
from fedcohort.dataset.user_table.find import find_files, load_tables
from fedcohort.dataset.user_table.inspection import MAX_LISTED_NAMES, SCALAR_KINDS, Decision, Inspection

KEY_ROLES = ("label", "client")  # roles of columns whose empty cells can't be filled


@dataclass(frozen=True)
class Proposal:
    """What a user's files contain, and the options that are proposed for them.

    Attributes:
        file_descriptions: a line for each table: its number of rows, and how the file is written.
        column_descriptions: name, kind and details of each column of the training table.
        decisions: what the user must decide, with proposals.
    """

    file_descriptions: Sequence[str]
    column_descriptions: Sequence[tuple[str, str, str]]
    decisions: Sequence[Decision]

    @property
    def options(self) -> dict[str, object]:
        """Proposed values of all options, by option name."""
        return {name: value for decision in self.decisions for name, value in decision.options.items()}


def propose_options(path: str, options: Mapping[str, str]) -> Proposal:
    """Inspect a user's files, and propose the options to load them.

    Args:
        path: a folder or a table, as `dataset.path`.
        options: the values of options that the user has typed, by option; nothing is proposed for these.

    Raises:
        DataError: no table can be read, or no column can hold labels.
    """
    files, problems = find_files(path), ProblemList()
    cuts_test_part = "test" not in files and not ("images" in files and (files["images"] / "test").is_dir())
    frames = load_tables(path, cuts_test_part, True, options.get("dataset.decimal", "auto"), problems)
    problems.raise_all()
    inspection = Inspection(frames, options, cuts_test_part)
    descriptions = [", ".join([f"{frame.origin}: {frame.table.num_rows:,} rows", *frame.notes]) for frame in frames]
    decisions = [
        replace(decision, options={name: value for name, value in decision.options.items() if name not in options})
        for decision in (*inspection.decide_roles(), *decide_inputs(inspection), *decide_missing_cells(inspection))
    ]
    return Proposal(descriptions, [inspection.describe_column(name) for name in frames[0].names], decisions)


def decide_inputs(inspection: Inspection) -> Iterator[Decision]:
    """Yield the decisions on the columns that are inputs, their encoding, and whether they are standardised.

    Args:
        inspection: the tables, with the roles of labels, clients and series decided.
    """
    levels = inspection.levels
    columns: dict[str, list[str]] = {}
    for name, column_kind in inspection.kinds.items():
        if name not in inspection.roles:
            columns.setdefault("number" if column_kind == "boolean" else column_kind, []).append(name)
    numeric_columns, images, lists = (columns.get(column_kind, []) for column_kind in ("number", "images", "lists"))
    if images or (lists and not numeric_columns):
        features = images[:1] or lists
        is_image_folder = bool(images) and inspection.train.names == ["image", "label"]
        options: dict[str, object] = {} if is_image_folder else {"dataset.features": features}
        options |= {"dataset.scale": 255, "model": "cnn"} if images else {}
        yield Decision("inputs", options, f"columns of {'images' if images else 'lists'}: {list_names(features)}")
        return
    if categories := [name for name in columns.get("text", []) if 2 <= levels[name] <= MAX_AUTO_LEVELS]:
        category_text = ", ".join(f"{name} ({levels[name]} values)" for name in categories[:MAX_LISTED_NAMES])
        yield Decision("categories", {"dataset.categories": categories}, f"{category_text}: one number for each value")
    if dates := columns.get("date", []):
        yield Decision("dates", {"dataset.dates": dates}, "as days since 1970")
    x = np.nan_to_num(inspection.train.read_matrix(numeric_columns, allow_missing=True))
    notice = next(scale_notices(x, numeric_columns), "") if numeric_columns else ""
    if notice or dates:
        reason = notice.partition(", which")[0] or "dates are far from unit scale"
        yield Decision("scale", {"dataset.standardise": True}, reason)


def decide_missing_cells(inspection: Inspection) -> Iterator[Decision]:
    """Yield the decision on missing cells, if there are any.

    Args:
        inspection: the tables, with the roles of their columns decided.
    """
    role_by_column, levels, missing_counts = inspection.roles, inspection.levels, dict[str, int]()
    for name, column_kind in inspection.kinds.items():
        is_used_column = column_kind != "text" or name in role_by_column or 2 <= levels[name] <= MAX_AUTO_LEVELS
        if column_kind not in SCALAR_KINDS or role_by_column.get(name, "label") not in KEY_ROLES or not is_used_column:
            continue
        for frame in (frame for frame in inspection.frames if name in frame.names):
            column = frame.column(name)
            is_feature = column_kind == "number" and name not in role_by_column and arrow_columns.may_be_numbers(column)
            is_missing = np.isnan(arrow_columns.to_numbers(column)) if is_feature else arrow_columns.empty_cells(column)
            missing_counts[name] = missing_counts.get(name, 0) + int(is_missing.sum())
    missing_counts = {name: n for name, n in missing_counts.items() if n}
    if not missing_counts:
        return
    cells_text = ", ".join(f"{name} ({n:,})" for name, n in list(missing_counts.items())[:MAX_LISTED_NAMES])
    if any(role_by_column.get(name) in KEY_ROLES for name in missing_counts):
        yield Decision(
            "missing", {"dataset.missing": "drop"}, f"cells hold no value: {cells_text}; drop omits these rows"
        )
    else:
        reason = f"cells hold no number or value: {cells_text}; mean fills in the feature's mean (drop omits the rows)"
        yield Decision("missing", {"dataset.missing": "mean"}, reason)
