"""What a user is warned of."""

from pathlib import Path

import numpy as np
import pytest

from folder_toy import folder, table


def test_more_columns_left_out_than_taken_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table(tmp_path, sex=["f", "m"] * 20, note=[f"n{k}" for k in range(40)])
    folder(tmp_path).load(0)
    assert "2 columns are left out (sex, note) and only 1 used as inputs: dataset.categories=auto" in caplog.text
    caplog.clear()
    folder(tmp_path, categories="auto").load(0)
    assert not caplog.text


@pytest.mark.parametrize(("value", "shown"), [(4e4, "40,000"), (2e-4, "0.0002")])
def test_features_far_from_unit_scale_propose_to_standardise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: float, shown: str
) -> None:
    table(tmp_path, income=np.full(40, value))
    folder(tmp_path).load(0)
    assert f"1 of 2 features are far from unit scale (root mean square: income ({shown}))" in caplog.text
    assert "dataset.standardise=true" in caplog.text
    caplog.clear()
    raw = folder(tmp_path, standardise=True).load(0)
    assert not caplog.text
    assert raw.standard is not None


def test_spaces_around_labels_are_removed_and_labels_that_differ_in_case_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table(tmp_path, label=[" yes", "yes", "no", "no "] * 10)
    raw = folder(tmp_path).load(0)
    assert raw.class_names == ("no", "yes")
    assert raw.inputs.endswith("; spaces around 40 labels removed")
    table(tmp_path, label=["Yes", "yes", "no", "no"] * 10)
    folder(tmp_path).load(0)
    assert "labels that differ only in case, which are different classes: ['Yes', 'yes']" in caplog.text
