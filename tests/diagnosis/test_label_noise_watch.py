"""What a row of gaps leads to, with a threshold of .2 and a persistence of .8."""

import pytest

from fedcohort.diagnosis.label_noise import NoiseMonitor


def watch(*gaps: float | None) -> NoiseMonitor:
    """Return what is known after probes with these gaps; None for one that does not count."""
    state = NoiseMonitor()
    for gap in gaps:
        state = state.with_invalid_probe() if gap is None else state.with_probe(gap, 0.2, 0.8)
    return state


@pytest.mark.parametrize(
    ("gaps", "is_acting", "is_suspected", "is_done"),
    [
        ((0.05,), False, False, True),
        ((0.15,), False, False, False),
        ((0.3,), False, True, False),
        ((None,), False, True, False),
        ((0.3, 0.25), True, False, False),
        ((0.3, 0.23), False, True, False),
        ((0.3, 0.23, 0.22), True, False, False),
        ((0.15, 0.3), True, False, False),
        ((None, 0.3), False, True, False),
        ((None, 0.3, 0.3), True, False, False),
        ((0.3, 0.3, None), True, False, False),
        ((0.3, 0.3, 0.25), True, False, False),
        ((0.3, 0.6, 0.45), False, False, True),
    ],
)
def test_decisions_follow_the_gaps_of_successive_probes(
    gaps: tuple[float | None, ...], is_acting: bool, is_suspected: bool, is_done: bool
) -> None:
    state = watch(*gaps)
    assert (state.is_acting, state.is_suspected, state.is_done) == (is_acting, is_suspected, is_done)
    assert state.is_released == (gaps == (0.3, 0.6, 0.45))


def test_the_largest_gap_since_the_exclusion_counts() -> None:
    """.3, .3, .5, .41: below .8 * .5 = .4 only the last would release, and .41 is not."""
    assert watch(0.3, 0.3, 0.5).largest_gap == 0.5
    assert watch(0.3, 0.3, 0.5, 0.41).is_acting
    assert watch(0.3, 0.3, 0.5, 0.39).is_released
