"""Raw Reddit comments are converted to sequences of ten words, and the training part is counted by word."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fedcohort.command import line
from fedcohort.dataset.raw import leaf
from fedcohort.errors import DataError
from raw_dataset_files import prepare_tables
from raw_dataset_files import write_leaf as raw_leaf
from reddit_tables import cut_comment, write_leaf_comments

SHORT, LONG = ["so", "it", "is"], ["it"] * 7 + ["is", "what", "it", "is"]


def test_comments_are_cut_into_the_same_sequences_as_by_leaf() -> None:
    """13 inputs of 11 words: <BOS> and nine of them, then two, <EOS> and padding; targets one word on."""
    (first, second), (targets, last) = cut_comment(LONG)
    assert first == ["<BOS>", *LONG[:9]]
    assert second == ["it", "is", "<EOS>", *["<PAD>"] * 7]
    assert targets == LONG[:10]
    assert last == ["is", "<EOS>", *["<PAD>"] * 8]


def test_preparing_reddit_writes_rows_and_a_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_leaf_comments(tmp_path / "raw", "train", {"1": [SHORT, LONG], "2": [SHORT]})
    write_leaf_comments(tmp_path / "raw", "val", {"1": [["no"]]})
    write_leaf_comments(tmp_path / "raw", "test", {"1": [LONG]})
    assert line.main(["prepare", "leaf", str(tmp_path / "raw"), str(tmp_path / "made")]) == 0
    assert "4 rows in train.parquet, 2 rows in test.parquet" in capsys.readouterr().out
    table = pq.read_table(tmp_path / "made" / "train.parquet").to_pydict()
    assert table["client"] == ["1", "1", "1", "2"]
    assert (table["x"][1:3], table["y"][1:3]) == cut_comment(LONG)
    result = pq.read_table(tmp_path / "made" / "vocabulary.parquet").to_pydict()
    assert result == {"word": ["it", "is", "<BOS>", "<EOS>", "so", "what"], "count": [10, 4, 3, 3, 2, 1]}
    modified_ns = (tmp_path / "made" / "vocabulary.parquet").stat().st_mtime_ns
    leaf.write_vocabulary(tmp_path / "made")
    assert (tmp_path / "made" / "vocabulary.parquet").stat().st_mtime_ns == modified_ns
    (tmp_path / "made" / "vocabulary.parquet").unlink()
    leaf.write_vocabulary(tmp_path / "made")
    assert (tmp_path / "made" / "vocabulary.parquet").stat().st_mtime_ns >= modified_ns, "made again"


def test_the_token_for_unknown_words_is_not_in_the_vocabulary(tmp_path: Path) -> None:
    """dataset=reddit has a symbol for <UNK> already, and refuses a vocabulary that has it, too."""
    write_leaf_comments(tmp_path / "raw", "train", {"1": [["so", "<UNK>", "is"]]})
    prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made")
    leaf.write_vocabulary(tmp_path / "made")
    assert "<UNK>" not in pq.read_table(tmp_path / "made" / "vocabulary.parquet")["word"].to_pylist()


def test_leaf_data_other_than_reddit_have_no_vocabulary_file(tmp_path: Path) -> None:
    raw_leaf(tmp_path / "raw", mac=(["abc"], ["d"]))
    prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made")
    leaf.write_vocabulary(tmp_path / "made")
    assert sorted(file.name for file in (tmp_path / "made").iterdir()) == ["prepared.json", "train.parquet"]


def test_an_invalid_comment_is_rejected_with_its_user_and_number(tmp_path: Path) -> None:
    def write_comments(x: Any, y: Any) -> None:
        raw_leaf(tmp_path, "a.json", **{"7": (x, y)})

    x, y = cut_comment(SHORT)
    for inputs, messages, refusal in (
        ([x], [{"subreddit": "s"}], "user '7', comment 0 has no lists x and y.target_tokens"),
        ([x, "so it is"], [{"target_tokens": y}, {"target_tokens": y}], "user '7', comment 1 has no lists x and y.tar"),
        (
            [x],
            [{"target_tokens": [*y, y[0]]}],
            r"comment 0 has words in lists of \[10\] and targets in lists of \[10, ",
        ),
        ([x, x], [{"target_tokens": y}], "user '7' has 2 entries in x, but 1 in y"),
    ):
        write_comments(inputs, messages)
        with pytest.raises(DataError, match=refusal):
            prepare_tables(
                leaf.plan_table_pieces(tmp_path, None), tmp_path / "made" / str(abs(hash(json.dumps(messages))))
            )
