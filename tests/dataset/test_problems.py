"""Problems that are collected are raised in one message, with each remedy once."""

import pytest

from fedcohort.dataset.problems import Problems, SeveralProblems, TableProblem
from fedcohort.errors import DataError


def test_one_problem_is_raised_as_it_is() -> None:
    problems = Problems("type something else")
    problems.raise_all()
    with problems.collect():
        raise TableProblem("row 3 is empty", "; mend it")
    with pytest.raises(DataError, match=r"^row 3 is empty; mend it$"):
        problems.raise_all()


def test_several_are_one_message_with_each_remedy_once_and_equal_ones_count_once() -> None:
    problems, nested = Problems("type something else"), Problems()
    for row in (3, 5, 3):
        with nested.collect():
            raise TableProblem(f"row {row} is empty", "; mend it")
    with problems.collect():
        nested.raise_all()
    problems.add(DataError("there is no test table"))
    with pytest.raises(SeveralProblems) as raised:
        problems.raise_all()
    assert str(raised.value) == (
        "the data have 3 problems:\n  1. row 3 is empty\n  2. row 5 is empty\n  3. there is no test table\n"
        "mend it\ntype something else"
    )
