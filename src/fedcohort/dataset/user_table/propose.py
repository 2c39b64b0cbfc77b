"""Inspect a user's files, and propose the options of `dataset=folder` with the reason for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import ErrorList, join_names
from fedcohort.dataset.user_table.column_kinds import MAX_AUTO_LEVELS, make_feature_scale_notices
from fedcohort.dataset.user_table.find import find_files_by_part, load_tables
from fedcohort.dataset.user_table.inspection import MAX_LISTED_NAMES, SCALAR_KINDS, DataDecision, TableInspection

UNFILLABLE_ROLES = ("label", "client")  # roles of columns whose empty cells can't be filled


@dataclass(frozen=True)
class DatasetProposal:
    """What a user's files contain, and the options that are proposed for them.

    Attributes:
        file_descriptions: a line for each table: its number of rows, and how the file is written.
        column_descriptions: name, kind and details of each column of the training table.
        decisions: what the user must decide, with proposals.
    """

    file_descriptions: Sequence[str]
    column_descriptions: Sequence[tuple[str, str, str]]
    decisions: Sequence[DataDecision]

    @property
    def options(self) -> dict[str, object]:
        """Proposed values of all options, by option name."""
        return {
            option_name: option_value
            for decision in self.decisions
            for option_name, option_value in decision.options.items()
        }


def propose_options(path: str, user_options: Mapping[str, str]) -> DatasetProposal:
    """Inspect a user's files, and propose the options to load them.

    Args:
        path: a folder or a table, as `dataset.path`.
        user_options: the values of options that the user has typed, by option; nothing is proposed for these.

    Raises:
        DataError: no table can be read, or no column can hold labels.
    """
    files, table_problems = find_files_by_part(path), ErrorList()
    draws_test_set = "test" not in files and not ("images" in files and (files["images"] / "test").is_dir())
    frames = load_tables(path, draws_test_set, True, user_options.get("dataset.decimal", "auto"), (), table_problems)
    table_problems.raise_collected_errors()
    inspection = TableInspection(frames, user_options, draws_test_set)
    table_texts = [", ".join([f"{frame.origin}: {frame.table.num_rows:,} rows", *frame.notes]) for frame in frames]
    decisions = [
        replace(decision, options={name: value for name, value in decision.options.items() if name not in user_options})
        for decision in (*inspection.propose_roles(), *propose_inputs(inspection), *decide_missing_cells(inspection))
    ]
    return DatasetProposal(table_texts, [inspection.describe_column(name) for name in frames[0].names], decisions)


def propose_inputs(inspection: TableInspection) -> Iterator[DataDecision]:
    """Yield the decisions on the columns that are inputs, their encoding, and whether they are standardised.

    Args:
        inspection: the tables, with the roles of labels, clients and series decided.
    """
    n_levels = inspection.levels
    columns_by_kind: dict[str, list[str]] = {}
    for column_name, column_kind in inspection.kinds.items():
        if column_name not in inspection.roles:
            columns_by_kind.setdefault("number" if column_kind == "boolean" else column_kind, []).append(column_name)
    numeric_columns, image_columns = columns_by_kind.get("number", []), columns_by_kind.get("images", [])
    list_columns = columns_by_kind.get("lists", [])
    if image_columns or (list_columns and not numeric_columns):
        feature_columns = image_columns[:1] or list_columns
        is_image_folder = bool(image_columns) and inspection.train.names == ["image", "label"]
        input_options: dict[str, object] = {} if is_image_folder else {"dataset.features": feature_columns}
        input_options |= {"dataset.scale": 255, "model": "cnn"} if image_columns else {}
        columns_text = f"columns of {'images' if image_columns else 'lists'}: {join_names(feature_columns)}"
        yield DataDecision("inputs", input_options, columns_text)
        return
    if category_columns := [
        column_name for column_name in columns_by_kind.get("text", []) if 2 <= n_levels[column_name] <= MAX_AUTO_LEVELS
    ]:
        levels_text = ", ".join(
            f"{column_name} ({n_levels[column_name]} values)" for column_name in category_columns[:MAX_LISTED_NAMES]
        )
        yield DataDecision(
            "categories", {"dataset.categories": category_columns}, f"{levels_text}: one number for each value"
        )
    if date_columns := columns_by_kind.get("date", []):
        yield DataDecision("dates", {"dataset.dates": date_columns}, "as days since 1970")
    feature_matrix = np.nan_to_num(inspection.train.read_matrix(numeric_columns, allow_missing=True))
    scale_notice = next(make_feature_scale_notices(feature_matrix, numeric_columns), "") if numeric_columns else ""
    if scale_notice or date_columns:
        scale_reason = scale_notice.partition(", which")[0] or "dates are far from unit scale"
        yield DataDecision("scale", {"dataset.standardise": True}, scale_reason)


def decide_missing_cells(inspection: TableInspection) -> Iterator[DataDecision]:
    """Yield the decision on missing cells, if there are any.

    Args:
        inspection: the tables, with the roles of their columns decided.
    """
    roles, n_levels, missing_counts = inspection.roles, inspection.levels, dict[str, int]()
    for column_name, column_kind in inspection.kinds.items():
        is_used_column = column_kind != "text" or column_name in roles or 2 <= n_levels[column_name] <= MAX_AUTO_LEVELS
        if (
            column_kind not in SCALAR_KINDS
            or roles.get(column_name, "label") not in UNFILLABLE_ROLES
            or not is_used_column
        ):
            continue
        for frame in (frame for frame in inspection.frames if column_name in frame.names):
            column_cells = frame.column(column_name)
            is_number = (
                column_kind == "number" and column_name not in roles and arrow_columns.may_hold_numbers(column_cells)
            )
            is_empty = (
                np.isnan(arrow_columns.as_float64(column_cells))
                if is_number
                else arrow_columns.find_empty_cells(column_cells)
            )
            missing_counts[column_name] = missing_counts.get(column_name, 0) + int(is_empty.sum())
    missing_counts = {
        column_name: missing_count for column_name, missing_count in missing_counts.items() if missing_count
    }
    if not missing_counts:
        return
    cells_text = ", ".join(
        f"{column_name} ({missing_count:,})"
        for column_name, missing_count in list(missing_counts.items())[:MAX_LISTED_NAMES]
    )
    if any(roles.get(column_name) in UNFILLABLE_ROLES for column_name in missing_counts):
        yield DataDecision(
            "missing", {"dataset.missing": "drop"}, f"cells hold no value: {cells_text}; drop omits these rows"
        )
    else:
        reason = f"cells hold no number or value: {cells_text}; mean fills in the feature's mean (drop omits the rows)"
        yield DataDecision("missing", {"dataset.missing": "mean"}, reason)
