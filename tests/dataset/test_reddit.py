"""Comments by their authors: tokens and targets by hand, what is refused, and whole runs on made-up comments."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedcohort.data.targets import PerPositionTargets
from fedcohort.dataset import reddit as module
from fedcohort.dataset.base import Raw
from fedcohort.dataset.parquet import ParquetTable
from fedcohort.dataset.raw import leaf
from fedcohort.dataset.reddit import Reddit
from fedcohort.errors import DataError, FedcohortError
from image_tables import write_image_table as write_part
from optional_values import not_none
from raw_dataset_files import prepare_tables
from reddit_tables import cut_comment, write_comments, write_leaf_comments
from run_harness import run_training, same_bits

BOS, COMMENT = "<BOS>", ["so", "it", "is"]


def load(folder: Path, vocabulary: int = 10_000, users: float = 1.0, least: int = 0) -> Raw:
    return Reddit(path=str(folder), columns=None, vocabulary=vocabulary, users=users, least=least).load(0)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two users with three comments "so it is" and one "it"; the test comments have one unknown word."""
    write_leaf_comments(tmp_path / "raw", "train", {"b": [COMMENT] * 3, "a": [COMMENT] * 3 + [["it"]]}, length=4)
    write_leaf_comments(tmp_path / "raw", "test", {"a": [["it", "was"]]}, length=4)
    prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made")
    leaf.write_vocabulary(tmp_path / "made")
    return tmp_path / "made"


def test_tokens_and_targets_by_hand(small: Path) -> None:
    """Counts: <BOS>, <EOS> and it 7, is and so 6. Symbols: 2 <BOS>, 3 <EOS>, 4 it, 5 is, 6 so."""
    data = load(small)
    assert data.targets == PerPositionTargets((0, 1))
    assert data.train_x.dtype == np.int16
    assert data.train_y.dtype == np.int64
    assert data.n_classes == 7
    assert not_none(data.train_owner).tolist() == [1] * 6 + [0] * 7
    assert data.train_x[:2].tolist() == [[2, 6, 4, 5], [3, 0, 0, 0]]
    assert data.train_y[:2].tolist() == [[6, 4, 5, 3], [0, -1, -1, -1]]
    assert data.test_x.tolist() == [[2, 4, 1, 3]]  # "was" is not among the training part's words
    assert data.test_y.tolist() == [[4, 1, 3, 0]]
    assert not_none(data.test_owner).tolist() == [0]
    n_targets, n_unknown = 3 * 5 * 2 + 3 + 4, 7 + 2
    assert f"{100 * n_unknown / n_targets:.1f} % of the targets are <PAD> or <UNK>" in data.inputs
    assert "4 words (LEAF's have 10), after each the next one is the target; 7 tokens" in data.inputs
    assert data.inputs.count("fewer") == 2
    assert "; vocabulary.parquet has fewer words than vocabulary=10,000; " in data.inputs
    assert "; 2 users, 811 fewer than the original's 813; " in data.inputs


def test_data_as_large_as_leafs_give_no_note(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ORIGINAL_USER_COUNTS", (2, 9))
    notes = load(small, vocabulary=7).inputs
    assert "fewer" not in notes
    monkeypatch.setattr(module, "ORIGINAL_USER_COUNTS", (1, 9))
    assert "2 users, 1 more than the original's 1" in load(small).inputs


def test_words_outside_of_the_vocabulary_are_the_unknown_token(small: Path) -> None:
    data = load(small, vocabulary=5)
    assert data.n_classes == 5
    assert data.train_x[0].tolist() == [2, 1, 4, 1]
    assert data.train_y[0].tolist() == [1, 4, 1, 3]


def test_the_minimum_per_user_counts_sequences(tmp_path: Path) -> None:
    made_folder = write_comments(tmp_path, users=6)
    sizes = np.concatenate([not_none(load(made_folder).train_owner), not_none(load(made_folder).test_owner)])
    counts = np.bincount(sizes)
    data = load(made_folder, least=int(counts.max()))
    n_kept = len(data.train_x) + len(data.test_x)
    assert counts.min() < counts.max()
    assert n_kept == counts.max() * (counts == counts.max()).sum()


def test_invalid_sequences_are_rejected_with_file_and_row(small: Path) -> None:
    x, y = cut_comment(COMMENT, 4)
    valid_columns: dict[str, Any] = {"client": ["a"] * 2, "x": x, "y": y}
    pads = ["<PAD>"] * 4
    for changes, refusal in (
        ({"x": [x[0], x[1][:3]]}, "column 'x', row 1 holds 3 words, but must hold 4 like the first row"),
        ({"x": [x[0][:3], x[1][:3]]}, "column 'x', row 0 holds 3 words, but must hold 4 like the training part"),
        ({"y": [y[0][:3], y[1][:3]]}, "column 'y', row 0 holds 3 words, but must hold 4 like 'x'"),
        ({"x": [x[0], pads], "y": [y[0], pads]}, "column 'x', row 1 holds only <PAD>"),
        (
            {"y": [y[0], ["is", *y[1][1:]]], "x": [x[0], ["<EOS>", "so", "<PAD>", "<PAD>"]]},
            "'y', row 1 is not 'x' shift",
        ),
        ({"x": [[BOS, None, "it", "is"], x[1]]}, "column 'x', row 0 holds a missing value"),
        ({"x": [1, 2]}, "column 'x' must hold lists of texts, but holds int64"),
        ({"y": None}, "has no column 'y'; it has client, x"),
        ({"client": None}, "has no column 'client'"),
    ):
        write_part(small, "test", **(valid_columns | changes))
        with pytest.raises(DataError, match=rf"^dataset.path: .*test.parquet.*{refusal}"):
            load(small)
    write_part(small, "vocabulary", word=["it", "<PAD>"])
    with pytest.raises(DataError, match="column 'word', row 1 holds '<PAD>', which occurs before in the vocabulary"):
        load(small)
    (small / "vocabulary.parquet").unlink()
    with pytest.raises(DataError, match=r"needs vocabulary.parquet or vocabulary.csv"):
        load(small)
    with pytest.raises(DataError, match=r"dataset=reddit needs dataset.path, a folder with train.parquet and test.par"):
        Reddit(path=None, columns=None, vocabulary=10, users=1.0, least=0).load(0)


def test_token_sequences_are_read_one_row_group_at_a_time(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of seven."""
    x, y = cut_comment(COMMENT, 4)
    rows: dict[str, Any] = {"client": ["a"] * 20, "x": (x * 20)[:20], "y": (y * 20)[:20]}
    for part in ("train", "test"):
        write_part(small, part, **rows)
    column = ParquetTable.column
    monkeypatch.setattr(ParquetTable, "column", lambda table, name: column(table, {"word": name}[name]))
    data = load(small)
    np.testing.assert_array_equal(data.train_x, np.tile(data.train_x[: len(x)], (20, 1))[:20])
    assert (data.train_x.dtype, data.train_y.dtype) == (np.dtype("int16"), np.dtype("int64"))
    for row, words, refusal in (
        (9, ["it"], "holds 1 words, but must hold 4 like the first row"),
        (15, None, "is empty"),
    ):
        write_part(small, "test", **rows | {"x": [*rows["x"][:row], words, *rows["x"][row + 1 :]]})
        with pytest.raises(DataError, match=f"column 'x', row {row} {refusal}"):
            load(small)


def list_overrides(made_folder: Path, *extra: str) -> tuple[str, ...]:
    run = ("dataset=reddit", f"dataset.path={made_folder}", "model=word_lstm", "model.hidden=8", "model.embedding=8")
    return (*run, "clients=null", "cohort=2", "rounds=2", "client.epochs=1", "client.clip=5", *extra)


FULL_TABLE = {
    "ucb_cs": ("selector=ucb_cs", "agg=scaffold"),
    "flash": ("selector=flash", "objective=flash_robust"),
    "oort": ("selector=oort", "samples=fedbalancer", "samples.w=1", "deadline=fedbalancer", "deadline.w=1"),
    "cpowd": ("selector=cpowd", "objective=propfair", "agg=propfair"),
}


@pytest.fixture(scope="module")
def saved_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_comments(tmp_path_factory.mktemp("saved"))


@pytest.mark.parametrize("case", FULL_TABLE)
def test_a_resumed_reddit_run_equals_the_uninterrupted_one(tmp_path: Path, saved_folder: Path, case: str) -> None:
    overrides = list_overrides(saved_folder, *FULL_TABLE[case])
    full_run = run_training(tmp_path / "a", *overrides)
    assert {"test/acc", "test/loss", "server_val/acc", "clients/acc_mean", "clients/jain"} <= set(full_run.last.metrics)
    assert 0 < full_run.last.metrics["test/loss"] < 3
    run_training(tmp_path / "b", *overrides, "rounds=1")
    assert same_bits(run_training(tmp_path / "b", *overrides, "resume=true"), full_run)


@pytest.mark.parametrize("case", ["flash", "oort"])
def test_a_reddit_run_on_two_processes_equals_one_process(tmp_path: Path, saved_folder: Path, case: str) -> None:
    overrides = list_overrides(
        saved_folder, *FULL_TABLE[case], "+callback.journal._target_=fedcohort.record.journal.Journal"
    )
    full_run = run_training(tmp_path / "a", *overrides)
    ranks = run_training(tmp_path / "c", *overrides, "trainer.devices=2", "engine.slices=3")
    torch.testing.assert_close(ranks.weights(), full_run.weights(), rtol=0, atol=1e-6)
    for first, second in zip(*(journal(item.folder) for item in (full_run, ranks)), strict=True):
        assert (first["cohort"], first["arrived"]) == (second["cohort"], second["arrived"])
        for name in ("test/acc", "test/loss", "server_val/loss", "clients/loss_mean"):
            assert second["metrics"][name] == pytest.approx(first["metrics"][name], abs=1e-5)


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def test_training_learns_a_repeated_comment(tmp_path: Path) -> None:
    """A comment "so it is", and no other one: of its five targets four are found, as <PAD> after <EOS> never is."""
    for part, n in (("train", 12), ("test", 2)):
        write_leaf_comments(tmp_path / "raw", part, {user: [COMMENT] * n for user in "abcd"})
    prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made")
    leaf.write_vocabulary(tmp_path / "made")
    trained_run = run_training(
        tmp_path / "logs", *list_overrides(tmp_path / "made", "client=adam", "client.lr=0.1", "client.epochs=20")
    )
    assert trained_run.last.metrics["test/acc"] == pytest.approx(0.8)
    assert trained_run.last.metrics["clients/acc_mean"] == pytest.approx(0.8)
    assert trained_run.last.metrics["test/loss"] < 0.1
    assert not [name for name in trained_run.last.metrics if "imbalance" in name or name.startswith("skew/")]
    assert trained_run.info.class_counts.shape == (4, 1)


@pytest.mark.parametrize(
    ("overrides", "refusal"),
    [
        (("heterogeneity=noniid30", "clients=3"), "partition=dominant_class uses the class of a sample, .*: choose"),
        (("partition=dirichlet", "clients=3"), "partition=dirichlet uses the class of a sample"),
        (
            ("partition=quantity", "partition@partition.base=label_shards", "clients=3"),
            "partition=quantity uses the",
        ),
        (("label_noise=beta",), "label_noise=beta uses the class .* choose another value of this option$"),
        (("label_noise=asymmetric",), "label_noise=asymmetric uses the class"),
        (
            ("selector=fedcbs",),
            "selector=fedcbs uses the class .*dataset=reddit has a target at each of its positions",
        ),
        (("selector=oracle_diverse",), "selector=oracle_diverse uses the class"),
        (("selector=feddiverse",), "selector=feddiverse uses the class"),
        (("agg=fedbio",), "agg=fedbio uses the class"),
        (("agg=feddf", "proxy=client_heldout"), "agg=feddf uses the class"),
        (("agg=rhfl", "proxy=client_heldout"), "agg=rhfl uses the class"),
        (("feature_noise=gaussian",), "feature_noise needs real numbers"),
        (("augmentation=crop_flip",), "augmentation=crop_flip needs image inputs"),
        (
            ("model=char_lstm",),
            "model=char_lstm predicts one class of a sequence, .* positions?: choose",
        ),
        (("model=mlp",), "model=mlp reads numbers, .* sequences of tokens: choose model=word_lstm"),
    ],
)
def test_options_that_need_one_class_per_sample_are_rejected(
    tmp_path: Path, saved_folder: Path, overrides: tuple[str, ...], refusal: str
) -> None:
    other_overrides = [
        override
        for override in list_overrides(saved_folder)
        if override.split("=")[0] not in {t.split("=")[0] for t in overrides}
    ]
    other_overrides = [
        override
        for override in other_overrides
        if not override.startswith("model.") or "model" not in "".join(overrides)
    ]
    with pytest.raises(FedcohortError, match=refusal):
        run_training(tmp_path / "logs", *other_overrides, *overrides)
    assert not (tmp_path / "logs").exists() or not list((tmp_path / "logs").rglob("journal.jsonl"))


def test_a_per_position_model_rejects_data_with_one_class_per_sample(tmp_path: Path) -> None:
    from shakespeare_tables import write_roles as save_roles  # noqa: PLC0415

    save_roles(tmp_path, dict.fromkeys(range(4), 6), dict.fromkeys(range(4), 4))
    plays = ("dataset=shakespeare", f"dataset.path={tmp_path}", "dataset.test=given", "clients=null", "cohort=2")
    message = "model=word_lstm predicts one class at each position of a sequence, and samples of .* have one class"
    with pytest.raises(FedcohortError, match=message):
        run_training(tmp_path / "logs", *plays, "model=word_lstm")


def test_reddit_samples_can_be_split_iid(tmp_path: Path, saved_folder: Path) -> None:
    trained_run = run_training(
        tmp_path / "logs", *list_overrides(saved_folder, "rounds=1", "heterogeneity=iid", "clients=3", "split.limit=40")
    )
    assert len(trained_run.info.n_train) == 3
