"""The trimmed mean of columns: slices of columns, and the share of each row."""

import numpy as np
import pytest
import torch
from scipy.stats import trim_mean

from fedcohort.maths import trimmed
from fedcohort.maths.trimmed import trimmed_mean


@pytest.mark.parametrize(("n", "k"), [(1, 0), (4, 1), (5, 0), (5, 2), (9, 3)])
def test_means_are_those_of_scipy_in_any_slices(n: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = torch.randn(n, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    full_mean, shares = trimmed_mean(matrix, k)
    np.testing.assert_allclose(full_mean, trim_mean(matrix, k / n + 1e-9, axis=0), atol=1e-15)
    assert shares.sum() == pytest.approx(1)
    monkeypatch.setattr(trimmed, "COLUMNS_PER_BLOCK", 3)
    means, shares_of_slices = trimmed_mean(matrix, k)
    assert torch.equal(means, full_mean)
    assert shares_of_slices.tolist() == shares.tolist()


def test_a_share_counts_the_middle_values() -> None:
    """Columns (1, 2, 3, 4) and (4, 3, 1, 2) without an extreme at each end: rows 1 and 2, then rows 1 and 3."""
    means, shares = trimmed_mean(torch.tensor([[1.0, 4.0], [2.0, 3.0], [3.0, 1.0], [4.0, 2.0]]), 1)
    assert means.tolist() == [2.5, 2.5]
    assert shares.tolist() == [0, 0.5, 0.25, 0.25]
