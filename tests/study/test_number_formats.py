import math

from fedcohort.results.difference import Mean
from fedcohort.study.number_formats import MetricFormat, format_integer_range


def test_numbers_have_sign_unit_and_interval() -> None:
    """Two seeds of three have no interval: it would reach beyond all that is possible."""
    show = MetricFormat(100.0, "points", 3)
    assert show.format_diff(Mean(-0.0001, 0.01, 5, 0.02)) == "+0.0 [-2.0, 2.0]"
    assert show.format_mean(Mean(0.5, 0.01, 5, 0.02)) == "50.0 [48.0, 52.0]"
    assert show.format_diff(Mean(0.01, 0.01, 2, 0.02)) == "+1.0"
    assert show.format_diff(Mean(math.nan, math.nan, 0, math.nan)) == "–"
    assert (show.format_difference_size(0.01), show.format_difference_size(0.025)) == ("1 point", "2.5 points")
    show = MetricFormat(100.0, "hundredths of a nat", 3)
    assert (show.format_difference_size(0.01), show.format_difference_size(0.02)) == (
        "1 hundredth of a nat",
        "2 hundredths of a nat",
    )
    assert (format_integer_range([3, 5, 4]), format_integer_range([5, 5]), format_integer_range([])) == (
        "3 to 5",
        "5",
        "no",
    )
