"""Text of messages about data: names in one line, differences from the original, and several problems in one error."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from fedcohort.errors import DataError

MAX_LISTED_NAMES = 12  # entries that a line shows


def join_names(names: Sequence[str], max_shown_entries: int = MAX_LISTED_NAMES) -> str:
    """Return names in one line, such as `age, x0 ... x7, site`.

    Args:
        names: names of columns, classes or files.
        max_shown_entries: maximum number of entries; three or more names with consecutive numbers are one entry.
    """
    name_groups: list[list[str]] = []
    for listed_name in names:
        if name_groups and _continues_numbered_names(name_groups[-1][-1], listed_name):
            name_groups[-1].append(listed_name)
        else:
            name_groups.append([listed_name])
    listed_entries = [
        listed_entry
        for name_group in name_groups
        for listed_entry in ([f"{name_group[0]} ... {name_group[-1]}"] if len(name_group) > 2 else name_group)
    ]
    further_entries_text = (
        [f"{len(listed_entries) - max_shown_entries} more"] if len(listed_entries) > max_shown_entries else []
    )
    return ", ".join(
        [*(group_text or "''" for group_text in listed_entries[:max_shown_entries]), *further_entries_text]
    )


def _continues_numbered_names(previous_name: str, next_name: str) -> bool:
    """Return whether `next_name` is `previous_name` with the number at its end increased by one, as in x7 and x8."""
    previous_number_match = re.fullmatch(r"(.*?)(\d{1,9})", previous_name)
    next_number_match = re.fullmatch(r"(.*?)(\d{1,9})", next_name)
    if previous_number_match is None or next_number_match is None or previous_number_match[1] != next_number_match[1]:
        return False
    return int(next_number_match[2]) == int(previous_number_match[2]) + 1


def note_count_difference(counted_thing: str, data_count: int, original_count: int) -> list[str]:
    """Return a note such as `3 training images, 7 fewer than the original's 10` in a list; [] if the counts are equal.

    Args:
        counted_thing: what is counted, such as "training images".
        data_count: number in the data at hand.
        original_count: number in the original dataset.
    """
    if data_count == original_count:
        return []
    more_or_fewer = "fewer" if data_count < original_count else "more"
    count_difference = abs(original_count - data_count)
    return [
        f"{data_count:,} {counted_thing}, {count_difference:,} {more_or_fewer} than the original's {original_count:,}"
    ]


class TableProblem(DataError):
    """A problem in one column or cell of a table.

    Attributes:
        problem_text: option, file, column and row, and what is wrong there.
        remedy: the action that solves the problem; empty if `problem_text` contains it.
    """

    def __init__(self, problem_text: str, remedy: str = "") -> None:
        super().__init__(problem_text + remedy)
        self.problem_text, self.remedy = problem_text, remedy


class CombinedDataError(DataError):
    """An error that lists several problems, one line per problem, and then each remedy once.

    Attributes:
        problems: the errors that were combined.
    """

    def __init__(self, problems: Sequence[DataError], general_remedy: str = "") -> None:
        self.problems = tuple(problems)
        problem_lines = [
            data_error.problem_text if isinstance(data_error, TableProblem) else str(data_error)
            for data_error in problems
        ]
        remedies = [data_error.remedy.lstrip("; ") for data_error in problems if isinstance(data_error, TableProblem)]
        message_lines = [
            f"the data have {len(problem_lines)} problems:",
            *(
                f"  {problem_number}. {problem_message}"
                for problem_number, problem_message in enumerate(problem_lines, 1)
            ),
        ]
        super().__init__("\n".join([*message_lines, *filter(None, dict.fromkeys([*remedies, general_remedy]))]))


class ErrorList:
    """A list to which independent checks add their errors, so that one error can report all of them.

    Attributes:
        errors: the errors, by message.
    """

    def __init__(self, general_remedy: str = "") -> None:
        """Start with an empty list.

        Args:
            general_remedy: last line of a message with several problems; empty for none.
        """
        self.errors: dict[str, DataError] = {}
        self._advice = general_remedy

    @contextmanager
    def collect_data_errors(self) -> Iterator[None]:
        """Return a context manager that adds a `DataError` of its block to the list instead of raising it."""
        try:
            yield
        except DataError as error:
            self.add_data_error(error)

    def add_data_error(self, error: DataError) -> None:
        """Add `error` to the list, or each problem of a `CombinedDataError`; equal messages count once."""
        for single_error in error.problems if isinstance(error, CombinedDataError) else [error]:
            self.errors[str(single_error)] = single_error

    def raise_collected_errors(self) -> None:
        """Raise the error in the list, or `CombinedDataError` if it holds several; do nothing if it is empty."""
        collected_errors = list(self.errors.values())
        if collected_errors:
            raise (
                collected_errors[0] if len(collected_errors) == 1 else CombinedDataError(collected_errors, self._advice)
            )


def format_more_rows_text(is_wrong_row: np.ndarray) -> str:
    """Return ` (and 3 more rows)`, the number of wrong rows after the first; "" if there are none.

    Args:
        is_wrong_row: whether each row is wrong, bool [n].
    """
    n_further_rows = int(np.count_nonzero(is_wrong_row)) - 1
    return f" (and {n_further_rows:,} more row{'s' * (n_further_rows > 1)})" if n_further_rows > 0 else ""
