"""LEAF's rules by hand."""

import numpy as np
import pytest

from fedcohort.dataset.base import Raw
from fedcohort.dataset.leaf import LeafDataset, TrainTestSplit, draw_people_sample
from fedcohort.errors import DataError, OptionError
from optional_values import not_none

SIZES = [10, 1, 20, 5, 40, 2]  # samples of each person
OWNER = np.repeat(np.arange(6), SIZES)


class Toy(LeafDataset):
    name, client, column_names = "toy", ("client",), (("client",),)

    def load(self, seed: int) -> Raw:
        raise NotImplementedError


def split_rows(
    test: str = "sample", users: float = 1.0, least: int = 0, n_train_file: int = 60, seed: int = 0
) -> TrainTestSplit:
    return Toy(None, None, None, test, users, least).split_train_test(OWNER, np.random.default_rng(seed), n_train_file)


def test_test_sample_trains_on_nine_tenths_of_each_persons_samples() -> None:
    """floor(.9 n) of 10, 20, 5 and 40 are 9, 18, 4 and 36; of 1 and 2 one trains, which is too few for a client."""
    result = split_rows()
    assert np.bincount(result.train_owner).tolist() == [9, 18, 4, 36]
    assert np.bincount(not_none(result.test_owner)).tolist() == [1, 2, 1, 4]
    assert not set(result.train_rows) & set(result.test_rows)
    assert (np.diff(result.train_rows) > 0).all()
    np.testing.assert_array_equal(np.array([0, 2, 3, 4])[result.train_owner], OWNER[result.train_rows])
    np.testing.assert_array_equal(np.array([0, 2, 3, 4])[not_none(result.test_owner)], OWNER[result.test_rows])
    assert result.people_note == "6 people, 4 of them clients; 2 with too few samples left out"
    assert result.train_rows.tolist() != split_rows(seed=1).train_rows.tolist()


def test_test_user_holds_out_a_tenth_of_the_people() -> None:
    """floor(.9 * 6) = 5 people train; the parts have no person in common, and a client has all samples of a person."""
    for seed in range(5):
        result = split_rows("user", seed=seed)
        trained, tested = (set(OWNER[rows]) for rows in (result.train_rows, result.test_rows))
        assert not trained & tested
        assert len(tested) == 1
        assert sorted(np.bincount(result.train_owner)) == sorted(SIZES[k] for k in trained)
        assert result.test_owner is None
        assert "the test samples are of other people: no metrics clients/acc_*" in result.people_note


def test_test_given_keeps_the_parts_of_the_files() -> None:
    result = split_rows("given", n_train_file=50)
    assert (result.train_rows < 50).all()
    assert (result.test_rows >= 50).all()
    # Person 4's samples 36 to 75 are in both parts; person 5 has test samples only, and is no client.
    assert OWNER[result.test_rows].tolist() == [4] * 26 + [5] * 2
    assert not_none(result.test_owner).tolist() == [3] * 26 + [4] * 2, "clients are persons 0, 2, 3 and 4"
    assert split_rows("given", n_train_file=36).test_owner is None, "persons 4 and 5 are strangers"


def test_drawn_people_keep_all_their_samples_except_the_last_person() -> None:
    rows = draw_people_sample(OWNER, 0.5, np.random.default_rng(3))
    assert len(rows) == 39
    kept_counts = np.bincount(OWNER[rows], minlength=6)
    assert sum(0 < n < full for n, full in zip(kept_counts, SIZES, strict=True)) <= 1
    assert (np.diff(rows) > 0).all()
    sizes = {len(split_rows(users=0.5, seed=seed).train_rows) for seed in range(9)}
    assert len(sizes) > 1, "who is drawn depends on the seed"


def test_people_with_few_samples_are_left_out() -> None:
    assert np.bincount(split_rows(least=10).train_owner).tolist() == [9, 18, 36]
    assert "3 with too few samples left out" in split_rows(least=10).people_note


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"least": 41}, "no training samples are left with test=sample, users=1 and least=41"),
        ({"test": "given", "n_train_file": len(OWNER)}, "no test samples are left with test=given"),
    ],
)
def test_a_selection_without_people_or_samples_is_rejected(options: dict[str, int], refusal: str) -> None:
    with pytest.raises(DataError, match=f"^dataset=toy: {refusal}"):
        split_rows(**options)  # type: ignore[arg-type]


def test_leaf_dataset_options_out_of_range_are_rejected() -> None:
    with pytest.raises(OptionError, match="test must be one of sample, user, given"):
        Toy(None, None, None, "none", 1.0, 0)
    with pytest.raises(OptionError, match=r"users must be a number in \(0, 1\], got 0"):
        Toy(None, None, None, "user", 0, 0)
    with pytest.raises(OptionError, match=r"least must be an integer in \[0, inf\)"):
        Toy(None, None, None, "user", 1, -1)
