"""The speed-ups in docs/where_selection_pays.md are those of the table of studies/regimes_digits."""

import csv
import re

from whole import claims

DOCS = " ".join((claims.ROOT / "docs" / "where_selection_pays.md").read_text().split())
SPEEDS, PHONES = "fixed client speeds, exponential, 10 h", "smartphone speeds, 5 min"


def read_speed_up(method: str, setting: str) -> tuple[str, str, str]:
    """Return the significant lower bound of a method's speed-up in virtual time, and its ratios of FLOPs and bytes."""
    path = claims.ROOT / "studies" / "regimes_digits" / "tables" / "speed_virtual_s_2.csv"
    rows = {row["method"]: row for row in csv.DictReader(path.read_text().splitlines())}
    match = re.fullmatch(r">=([\d.]+)▲ \(([\d.]+), ([\d.]+)\)", rows[method][setting])
    assert match, f"not a significant lower bound: {rows[method][setting]}"
    return match[1], match[2], match[3]


def test_the_docs_have_the_speed_ups_of_the_study() -> None:
    pyramid, oort, pyramid_phones, oort_phones = (
        read_speed_up(method, setting) for setting in (SPEEDS, PHONES) for method in ("pyramidfl", "oort")
    )
    assert oort[1] == oort[2]
    for text in (
        f"PyramidFL reaches 90 % at least {pyramid[0]} times as fast as random selection in virtual time",
        f"its clients have computed {pyramid[1]} times as much and sent {pyramid[2]} times the bytes",
        f"Oort is at least {oort[0]} times as fast at {oort[1]} times the FLOPs and bytes",
        "With measured phones the figures are {} ({} and {} times) ".format(*pyramid_phones)
        + "and {} ({} and {} times)".format(*oort_phones),
    ):
        assert text in DOCS
    assert claims.read_study("regimes_digits")["target"] == 0.9
