"""Sequences of characters by hand, on made-up roles and, where they are, on the plays."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fake_hub import COMMIT, serve_folder
from fedcohort.dataset.base import Raw
from fedcohort.dataset.parquet import ParquetTable
from fedcohort.dataset.raw import leaf as raw
from fedcohort.dataset.shakespeare import ALPHABET, Shakespeare, encode_text
from fedcohort.errors import DataError, OptionError
from image_tables import DATA_FOLDER, write_image_table
from optional_values import not_none
from raw_dataset_files import prepare_tables
from raw_dataset_files import write_leaf as raw_leaf
from run_harness import compose_overrides, run_training
from shakespeare_tables import make_lines, write_roles

TRAIN, TEST = {0: 6, 1: 4, 2: 9}, {0: 4, 1: 1, 2: 5}  # lines of 29 characters


def load(folder: Path, test: str = "given", users: float = 1.0, least: int = 0, step: int = 1) -> Raw:
    return Shakespeare(str(folder), "hub", None, test, users, least, step).load(0)


def decode(codes: np.ndarray) -> str:
    return "".join(ALPHABET[c] for c in codes)


def test_the_alphabet_has_eighty_characters() -> None:
    assert len(ALPHABET) == len(set(ALPHABET)) == 80
    codes, n_unknown = encode_text("\nA}\t€")
    assert decode(codes) == "\nA}  "
    assert n_unknown == 2


def test_every_sequence_is_part_of_its_roles_text(tmp_path: Path) -> None:
    """A text of n lines has 30 n - 1 characters, and 30 n - 81 sequences of 81 of them."""
    write_roles(tmp_path, TRAIN, TEST)
    data = load(tmp_path)
    assert data.train_x.dtype == np.uint8
    assert np.bincount(not_none(data.train_owner)).tolist() == [99, 39, 189]
    # One line of role 1 has no sequence; 4 and 5 lines have 39 and 69.
    assert np.bincount(not_none(data.test_owner)).tolist() == [39, 0, 69]
    for role, n in TRAIN.items():
        text = " ".join(make_lines(role, n))
        rows = np.flatnonzero(not_none(data.train_owner) == role)
        for i in (0, 7, len(rows) - 1):
            assert decode(data.train_x[rows[i]]) == text[i : i + 80]
            assert ALPHABET[data.train_y[rows[i]]] == text[i + 80]
    later = " ".join(make_lines(2, 14)[9:])
    assert decode(data.test_x[-1]) + ALPHABET[data.test_y[-1]] == later[-81:]
    assert data.class_names[:3] == ("line break", "space", "!")
    assert "3 people, 3 of them clients" in data.inputs
    overlap = "validation sequences overlap training sequences"
    assert overlap in data.inputs
    assert overlap in load(tmp_path, step=80).inputs
    assert overlap not in load(tmp_path, step=81).inputs, "two sequences and their labels are apart"


def test_training_and_test_sequences_of_a_role_do_not_overlap(tmp_path: Path) -> None:
    """Of 30 (6 + 4) - 81 = 219 sequences floor(.9 * 219) = 197 train; 80 more are left out, so none is for the test."""
    write_roles(tmp_path, {0: 6, 2: 30}, {0: 4, 2: 6})
    data = load(tmp_path, "sample")
    assert np.bincount(not_none(data.train_owner)).tolist() == [197, int(0.9 * (30 * 36 - 81))]
    text = " ".join(make_lines(2, 36))
    is_second_role, tested = not_none(data.train_owner) == 1, not_none(data.test_owner)
    assert (tested == 1).all()
    assert len(tested) == 999 - 899 - 80
    last_train, first_test = decode(data.train_x[is_second_role][-1]), decode(data.test_x[0])
    assert text.index(last_train) + 81 == text.index(first_test)
    for step in (2, 7, 30):
        data = load(tmp_path, "sample", step=step)
        starts = [text.index(decode(x)) for x in data.test_x]
        owner = not_none(data.train_owner)  # role 0 has too few sequences at large steps
        ends = [text.index(decode(x)) + 81 for x in data.train_x[owner == owner.max()]]
        assert min(starts) >= max(ends)
        assert min(starts) - (max(ends) - 81) == step * (80 // step + 1), "more sequences than necessary are left out"
        assert np.diff(ends).tolist() == [step] * (len(ends) - 1)


def test_test_user_holds_out_a_tenth_of_the_roles(tmp_path: Path) -> None:
    write_roles(tmp_path, dict.fromkeys(range(10), 5), dict.fromkeys(range(10), 2))
    data = load(tmp_path, "user")
    assert (len(np.unique(not_none(data.train_owner))), data.test_owner) == (9, None)
    assert len(data.test_x) == 30 * 7 - 81
    assert data.pooled_test
    assert len(load(tmp_path, "user", users=0.5).train_x) < len(data.train_x)
    assert "; 10 roles, 1,119 fewer than the original's 1,129" in data.inputs
    assert "original" not in load(tmp_path, "user", step=2).inputs, "of another step there are other sequences"


def test_text_lines_give_the_same_sequences_as_leafs_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_roles(tmp_path, TRAIN, TEST)
    expected = load(tmp_path)
    for part, x, y, owner in (
        ("train", expected.train_x, expected.train_y, not_none(expected.train_owner)),
        ("test", expected.test_x, expected.test_y, not_none(expected.test_owner)),
    ):
        users: dict[str, Any] = {
            f"role{k}": ([decode(row) for row in x[owner == k]], [ALPHABET[c] for c in y[owner == k]])
            for k in np.unique(owner).tolist()
        }
        raw_leaf(tmp_path / "raw", f"{part}/all.json", **users)
    prepare_tables(raw.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made")
    data = load(tmp_path / "made")
    assert "original" not in data.inputs, "LEAF's own parts lack what both would share"
    n, notes = len(expected.train_x) + len(expected.test_x), load(tmp_path / "made", "user", users=0.9).inputs
    assert notes.endswith(
        f"; {n} sequences, {4_226_158 - n:,} fewer than the original's 4,226,158; 3 roles, 1,126 fewer than the "
        "original's 1,129"
    )
    np.testing.assert_array_equal(data.train_x, expected.train_x)
    np.testing.assert_array_equal(data.test_y, expected.test_y)
    np.testing.assert_array_equal(not_none(data.train_owner), not_none(expected.train_owner))
    serve_folder(monkeypatch, tmp_path / "made")
    dataset = Shakespeare(None, "a/plays", None, "user", 1.0, 0, 1).load(0)
    assert dataset.revision == f"a/plays@{COMMIT}"


def test_invalid_texts_are_rejected_with_file_and_row(tmp_path: Path) -> None:
    valid_columns = {"client": ["a"] * 3, "x": ["x" * 80] * 3, "y": ["y"] * 3}
    for changes, refusal in (
        ({"x": ["x" * 80, "x" * 79, "x" * 80]}, "column 'x', row 1 holds 79 characters; it must hold 80"),
        ({"y": ["y", "y", "yy"]}, "column 'y', row 2 holds 2 characters; it must hold 1"),
        ({"y": [1, 2, 3]}, "column 'y' must hold texts, but holds int64"),
        ({"x": ["x" * 80, None, ""]}, "column 'x', row 1 is empty"),
        ({"x": None}, "has no column 'x'; it has client, y"),
        ({"client": None}, "has no column 'role' or 'client' or 'character_id'"),
    ):
        for part in ("train", "test"):
            write_image_table(tmp_path, part, **(valid_columns | (changes if part == "test" else {})))
        with pytest.raises(DataError, match=rf"^dataset.path: .*test.parquet.*{refusal}"):
            load(tmp_path)
    write_roles(tmp_path, {0: 2}, {0: 2})
    with pytest.raises(DataError, match="dataset=shakespeare has no samples"):
        load(tmp_path)
    with pytest.raises(OptionError, match=r"step must be an integer in \[1, inf\), got 0"):
        load(tmp_path, step=0)


def test_character_sequences_are_read_one_row_group_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has row groups of seven rows; y holds texts that occur once each."""
    n, text = 20, "".join(ALPHABET[2:][i % 70] for i in range(101))
    y = pa.array([text[i + 80] for i in range(n)]).dictionary_encode()
    valid_columns = {"client": ["a"] * n, "x": [text[i : i + 80] for i in range(n)], "y": y}
    for part in ("train", "test"):
        write_image_table(tmp_path, part, **valid_columns)
    column = ParquetTable.column
    monkeypatch.setattr(ParquetTable, "column", lambda table, name: column(table, {}[name]))
    data = load(tmp_path)
    assert [decode(codes) for codes in data.train_x] == valid_columns["x"]
    assert decode(data.test_y) == text[80:100]
    write_image_table(
        tmp_path, "test", **valid_columns | {"x": [*valid_columns["x"][:9], "x", *valid_columns["x"][10:]]}
    )
    with pytest.raises(DataError, match="column 'x', row 9 holds 1 characters"):
        load(tmp_path)


def test_the_real_plays_have_the_documented_sizes() -> None:
    """4.3 million characters; every fortieth sequence of a tenth of them."""
    if not (DATA_FOLDER / "shakespeare").is_dir():
        pytest.skip("no ../shared/data/shakespeare beside the repository: the real data are shared, not committed")
    data = load(DATA_FOLDER / "shakespeare", "given", 0.1, 3, 40)
    assert "1104 people" in data.inputs
    assert 7_000 < len(data.train_x) < 10_000
    assert decode(data.train_x[0]).count(" ") > 8
    assert "153 other characters are spaces" in data.inputs


def test_a_run_on_shakespeare_has_a_client_per_role(tmp_path: Path) -> None:
    write_roles(tmp_path, dict.fromkeys(range(4), 6), dict.fromkeys(range(4), 4))
    overrides = ("dataset=shakespeare", f"dataset.path={tmp_path}", "dataset.test=given", "dataset.step=9")
    extra = ("model=char_lstm", "model.hidden=8", "clients=null", "cohort=2", "rounds=1")
    assert compose_overrides(*overrides, *extra).choices["heterogeneity"] == "natural"
    run = run_training(tmp_path / "logs", *overrides, *extra)
    assert len(run.info.n_train) == 4
    assert "clients/acc_mean" in run.last.metrics
    assert run.info.tags["engine"].startswith("sequential: autograd on flat views")
    flops = 2 * 80 * (4 * 8 * (8 + 8) + 4 * 8 * (8 + 8)) + 2 * 8 * 80  # embedding 8, hidden 8
    assert run.last.metrics["comp/client_flops"] % flops == 0
    assert run.last.metrics["comp/client_flops"] > 0
