import pytest

from fedcohort.dataset.naming import list_names


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
