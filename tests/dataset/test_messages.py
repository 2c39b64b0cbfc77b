import pytest

from fedcohort.dataset.messages import difference, list_names


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], ""),
        (["b", "a", ""], "b, a, ''"),
        (["x0", "x1", "age", "x7", "x8", "x9"], "x0, x1, age, x7 ... x9"),
        (["p9", "p10", "p11", "q12"], "p9 ... p11, q12"),
        (list("abcdefghijklmno"), "a, b, c, d, e, f, g, h, i, j, k, l, 3 more"),
    ],
)
def test_names_in_a_line(names: list[str], said: str) -> None:
    assert list_names(names) == said


def test_a_difference_in_a_line() -> None:
    assert difference("images", 3, 1200) == ["3 images, 1,197 fewer than the original's 1,200"]
    assert difference("images", 5, 3) == ["5 images, 2 more than the original's 3"]
    assert difference("images", 5, 5) == []
