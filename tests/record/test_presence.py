import numpy as np

from case_loop import for_all
from fedcohort.record.presence import decode_available, encode_available


@for_all("count", [1, 7, 8, 9, 1000])
@for_all("share", [0.0, 0.3, 1.0])
def test_availability_survives_a_round_trip(count: int, share: float) -> None:
    available = np.random.default_rng(count).random(count) < share
    np.testing.assert_array_equal(decode_available(encode_available(available)), available)


def test_full_availability_is_short_and_others_take_at_most_a_bit_per_client() -> None:
    assert encode_available(np.ones(1_000_000, dtype=bool)) == "1000000:"
    random_half = np.random.default_rng(0).random(1_000_000) < 0.5
    assert len(encode_available(random_half)) < 1.01 * 1_000_000 / 8 * 4 / 3
