import pytest

from fedcohort.dataset.messages import (
    CombinedDataError,
    ErrorList,
    TableProblem,
    join_names,
    note_count_difference,
)
from fedcohort.errors import DataError


@pytest.mark.parametrize(
    ("names", "expected_text"),
    [
        ([], ""),
        (["b", "a", ""], "b, a, ''"),
        (["x0", "x1", "age", "x7", "x8", "x9"], "x0, x1, age, x7 ... x9"),
        (["p9", "p10", "p11", "q12"], "p9 ... p11, q12"),
        (list("abcdefghijklmno"), "a, b, c, d, e, f, g, h, i, j, k, l, 3 more"),
    ],
)
def test_numbered_names_are_abbreviated_in_messages(names: list[str], expected_text: str) -> None:
    assert join_names(names) == expected_text


def test_a_note_states_the_difference_from_the_original_count() -> None:
    assert note_count_difference("images", 3, 1200) == ["3 images, 1,197 fewer than the original's 1,200"]
    assert note_count_difference("images", 5, 3) == ["5 images, 2 more than the original's 3"]
    assert note_count_difference("images", 5, 5) == []


def test_a_single_data_error_is_raised_unchanged() -> None:
    problems = ErrorList("type something else")
    problems.raise_collected_errors()
    with problems.collect_data_errors():
        raise TableProblem("row 3 is empty", "; mend it")
    with pytest.raises(DataError, match=r"^row 3 is empty; mend it$"):
        problems.raise_collected_errors()


def test_several_data_errors_become_one_message_without_repetition() -> None:
    problems, nested = ErrorList("type something else"), ErrorList()
    for row in (3, 5, 3):
        with nested.collect_data_errors():
            raise TableProblem(f"row {row} is empty", "; mend it")
    with problems.collect_data_errors():
        nested.raise_collected_errors()
    problems.add_data_error(DataError("there is no test table"))
    with pytest.raises(CombinedDataError) as raised:
        problems.raise_collected_errors()
    assert str(raised.value) == (
        "the data have 3 problems:\n  1. row 3 is empty\n  2. row 5 is empty\n  3. there is no test table\n"
        "mend it\ntype something else"
    )
