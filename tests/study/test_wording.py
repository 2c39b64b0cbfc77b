import pytest

from fedcohort.study.wording import spell_p


@pytest.mark.parametrize(
    ("p", "said"), [(1.0, "1.000"), (0.0123, "0.012"), (0.0005, "0.001"), (0.00049, "< 0.001"), (0.0, "< 0.001")]
)
def test_no_p_is_nought(p: float, said: str) -> None:
    """Three places of .0005 are .001 as printed, or below it; never .000."""
    assert spell_p(p) == said
