"""Numbers as people read them: what is rounded never shows as 60 of something."""

from case_loop import for_all
from fedcohort import units


@for_all(
    "seconds, text",
    [
        (0.1234, "0.123 s"),
        (119.4, "119 s"),
        (120.0, "2 min 0 s"),
        (239.4, "3 min 59 s"),
        (239.6, "4 min 0 s"),
        (4771.0, "79 min 31 s"),
        (7199.4, "119 min 59 s"),
        (7199.6, "2 h 0 min"),
        (4 * 3600 - 31, "3 h 59 min"),  # 3 h 59.48 min
        (4 * 3600 - 29, "4 h 0 min"),  # 3 h 59.52 min
        (172_799.0, "2 d 0 h"),
        (3 * 86_400 - 1799, "3 d 0 h"),  # 2 d 23.5003 h
        (float("nan"), "-"),
    ],
)
def test_seconds_are_rounded_to_readable_units(seconds: float, text: str) -> None:
    assert units.format_seconds(seconds) == text


def test_a_rough_duration_is_in_one_unit() -> None:
    seconds = (0.2, 89, 90, 5399, 5400, 36_100, 172_800)
    expected = ["1 s", "89 s", "2 min", "90 min", "1.5 h", "10.0 h", "2 days"]
    assert [units.format_rough_seconds(value) for value in seconds] == expected
