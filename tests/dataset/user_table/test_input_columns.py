"""Categories and dates as numbers."""

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.errors import DataError, OptionError
from folder_tables import make_folder_dataset, set_value, write_both_parts, write_part
from optional_values import not_none

SEX = ["f", "m"] * 20
DAYS = [datetime.date(1970, 1, 1 + k % 28) for k in range(40)]


def test_levels_are_those_of_the_training_rows(tmp_path: Path) -> None:
    write_part(tmp_path, "train", x=np.arange(40.0), sex=SEX, label=[0, 1] * 20)
    write_part(tmp_path, "test", x=[1.0, 2.0, 3.0], sex=["m", " f ", "x"], label=[0, 1, 0])
    raw = make_folder_dataset(tmp_path, categories=["sex"]).load(0)
    assert raw.columns == ("x", "sex=f", "sex=m")
    np.testing.assert_array_equal(raw.train_x[:2], [[0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(raw.test_x, [[1, 0, 1], [2, 1, 0], [3, 0, 0]])
    assert json.loads(raw.categories) == {"sex": ["f", "m"]}
    assert "1 cells of sex in test.parquet have values that no training row has" in raw.inputs


def test_auto_takes_texts_of_few_values(tmp_path: Path) -> None:
    write_both_parts(
        tmp_path, sex=SEX, name=[f"n{k}" for k in range(40)], one=["a"] * 40, site=[f"s{k % 4}" for k in range(40)]
    )
    raw = make_folder_dataset(tmp_path, categories="auto", client="site").load(0)
    assert raw.columns == ("x", "sex=f", "sex=m")


@pytest.mark.parametrize("option", ["categories", "dates"])
@pytest.mark.parametrize("role", ["label", "client"])
def test_labels_and_clients_cannot_be_encoded_as_inputs(tmp_path: Path, option: str, role: str) -> None:
    columns = {"label": "outcome", "client": "site"}
    with pytest.raises(OptionError, match=f"{option} and {role} must be two columns, got '{columns[role]}' for both"):
        make_folder_dataset(tmp_path, **columns, **{option: ["x", columns[role]]})


def test_whole_numbers_may_be_categories(tmp_path: Path) -> None:
    write_both_parts(tmp_path, zip=[10 * (k % 3) for k in range(40)])
    raw = make_folder_dataset(tmp_path, categories=["zip"]).load(0)
    assert raw.columns == ("x", "zip=0", "zip=10", "zip=20")


def test_empty_cells_are_named_dropped_or_filled_with_the_share_of_each_level(tmp_path: Path) -> None:
    write_part(tmp_path, "train", x=np.arange(40.0), sex=set_value(set_value(SEX, 3, None), 5, " "), label=[0, 1] * 20)
    write_part(tmp_path, "test", x=[1.0], sex=["m"], label=[0])
    with pytest.raises(DataError, match=r"column 'sex', row 3 is empty \(and 1 more row\); correct it"):
        make_folder_dataset(tmp_path, categories=["sex"]).load(0)
    assert len(make_folder_dataset(tmp_path, categories=["sex"], missing="drop").load(0).train_y) == 38
    filled_inputs = make_folder_dataset(tmp_path, categories=["sex"], missing="mean").load(0).train_x
    np.testing.assert_allclose(filled_inputs[3, 1:], [20 / 38, 18 / 38], rtol=1e-6)


def test_dates_are_days_since_1970(tmp_path: Path) -> None:
    noon = [datetime.datetime(1970, 1, 2, 12)] * 40
    write_both_parts(tmp_path, when=DAYS, noon=noon)
    raw = make_folder_dataset(tmp_path, dates="auto").load(0)
    assert raw.columns == ("x", "when", "noon")
    np.testing.assert_allclose(raw.train_x[:2, 1:], [[0, 1.5], [1, 1.5]])
    with pytest.raises(
        DataError, match=r"^dataset.dates: .*column 'x' must hold dates as 2024-12-31, but holds double"
    ):
        make_folder_dataset(tmp_path, dates=["x"]).load(0)


def test_columns_that_cannot_be_encoded_are_rejected_by_name(tmp_path: Path) -> None:
    write_both_parts(tmp_path, one=["a"] * 40, lists=[[1.0]] * 40)
    with pytest.raises(
        DataError, match=r"^dataset.categories: .*column 'one' has 1 different values, but only 2 to 1,000"
    ):
        make_folder_dataset(tmp_path, categories=["one"]).load(0)
    with pytest.raises(DataError, match=r"column 'lists' must hold texts or numbers as a category"):
        make_folder_dataset(tmp_path, categories=["lists"]).load(0)
    with pytest.raises(DataError, match=r"^dataset.categories: .* has no column 'y'; it has"):
        make_folder_dataset(tmp_path, categories=["y"]).load(0)
    with pytest.raises(OptionError, match="categories must be a list of texts"):
        make_folder_dataset(tmp_path, categories="sex")


def test_a_run_keeps_the_levels(tmp_path: Path) -> None:
    write_both_parts(tmp_path, sex=SEX)
    assert not_none(json.loads(make_folder_dataset(tmp_path, categories="auto").load(0).categories)) == {
        "sex": ["f", "m"]
    }


def test_labels_clients_and_categories_of_a_csv_file_keep_their_spellings(tmp_path: Path) -> None:
    lines = [f"{k},{('01', '1')[k % 2]},{('007', '07', '7')[k // 2 % 3]},{('7', '07')[k // 20]}" for k in range(40)]
    (tmp_path / "train.csv").write_text("\n".join(["x,label,site,ward", *lines]))
    raw = make_folder_dataset(tmp_path, test_share=0.2, client="site", categories=["ward"]).load(0)
    assert (raw.class_names, raw.owner_names) == (("01", "1"), ("007", "07", "7"))
    assert raw.columns == ("x", "ward=07", "ward=7")


@pytest.mark.parametrize("columns", [{"sex=f": range(40)}, {"sex=f": ["g", "h"] * 20, "sex": ["f=g", "m"] * 20}])
def test_two_inputs_of_the_same_name_are_an_error(tmp_path: Path, columns: dict[str, Any]) -> None:
    write_both_parts(tmp_path, **{"sex": ["f", "m"] * 20, **columns})
    with pytest.raises(DataError, match=r"^dataset.categories: .*train.parquet: two inputs have the name 'sex=f(=g)?'"):
        make_folder_dataset(tmp_path, categories="auto").load(0)
