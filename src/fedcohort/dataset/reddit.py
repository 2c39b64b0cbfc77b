"""Next-word prediction on Reddit comments, with a client for each author (LEAF, Caldas et al. 2018).

    comment = <BOS> w_1 ... w_n <EOS> <PAD> ...,   cut into sequences x of ten tokens

    y_p = the token after x_p in its comment, <PAD> after <EOS>;   positions where x_p is <PAD> have no target

Token 0 is <PAD> and token 1 is <UNK>. The others are the most frequent tokens of the training part, among them <BOS>
and <EOS>. Client k is the k-th user by id among the users with three training sequences or more.

The loss of a sequence is the mean cross-entropy over its targets, its accuracy the share of correctly predicted
targets. As in LEAF, the targets <PAD> and <UNK> always count as wrong, so that the accuracy stays below 1. The start-up
table states the share of such targets.

The data are train.parquet, test.parquet and vocabulary.parquet in a folder, as `fedcohort prepare leaf` writes them.
The columns are `client`, and `x` and `y`, lists of one length. The parts of the files are kept: LEAF splits each user's
comments in time, and the sequences of a comment belong together. Use model=word_lstm.

LEAF's Reddit has 1,660,820 users with 56,587,343 comments. Its subset, on which FedBalancer trains, has 813 users (Shin
et al. 2022, Sec. 4.1: 32,680 samples). The start-up table states the difference to the nearer of the two in users.
Comments are not compared, since the validation part isn't read. The table also states a vocabulary that is smaller than
the option `vocabulary`.

LEAF's JSON was read as its code writes it. This loader was tested on small synthetic files of that form only.

Departures from LEAF: a sample is a sequence, where LEAF counts comments. Means are over sequences with equal weights;
LEAF's accuracy is over all tokens, and its loss over mini-batches, position by position. LEAF counts <PAD> among the
tokens of the vocabulary, which therefore holds one token less.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcohort import ranges
from fedcohort.data.targets import UNLABELLED, Positions
from fedcohort.dataset import cells, leaf
from fedcohort.dataset.base import ROWS, Dataset, Raw
from fedcohort.dataset.naming import difference
from fedcohort.dataset.source import Columns, check_columns, column_of, frames_of
from fedcohort.dataset.table import Frame, text
from fedcohort.errors import DataError
from fedcohort.rng import generator
from fedcohort.types import Ids

CLIENT = ("client",)
PAD, UNK = 0, 1
SPECIAL = ("<PAD>", "<UNK>")  # tokens 0 and 1
LENGTH = 10  # tokens of LEAF's sequences
USERS = (813, 1_660_820)  # of LEAF's subset, and of all its data
MAX_INT16_TOKENS = 2**15  # vocabulary size up to which tokens are int16


@dataclass(frozen=True)
class Reddit(Dataset):
    """The dataset with its options.

    Attributes:
        path: a local folder; None is an error, since the Hugging Face hub has no such tables.
        columns: the tables' names of columns, by the names above; None if they are the same.
        vocabulary: maximum number of tokens, including <PAD> and <UNK>.
        users, least: LEAF's rules (`dataset.leaf`), where samples are sequences.
    """

    path: str | None
    columns: Columns | None
    vocabulary: int
    users: float
    least: int

    def __post_init__(self) -> None:
        text("path", self.path, optional=True)
        check_columns(self.columns, CLIENT, ("x",), ("y",), ("word",))
        ranges.integer("vocabulary", self.vocabulary, "[3, 1e9]")
        leaf.Rules("given", self.users, self.least)

    def load(self, seed: int) -> Raw:
        """Return int16 tokens [N, T] (int32 for large vocabularies), labels [N, T] and natural clients.

        Raises `DataError`.
        """
        if self.path is None:
            raise DataError(
                "dataset=reddit needs dataset.path, a folder with train.parquet, test.parquet and vocabulary.parquet: "
                "fedcohort prepare leaf makes them of LEAF's JSON"
            )
        *frames, vocabulary = frames_of("reddit", self.path, None, self.columns, ("train", "test", "vocabulary"))
        tokens = tokens_of(vocabulary, self.vocabulary)
        owner, n_train = leaf.people(frames, CLIENT), frames[0].table.num_rows
        rules = leaf.Rules("given", self.users, self.least)
        parts = leaf.divide("reddit", owner, rules, generator(seed, "leaf"), n_train)
        n_users = len(np.unique(owner))
        del owner  # `parts` has the owners of the rows that are used
        x, y = _read_part(frames[0], tokens)
        test_x, test_y = _read_part(frames[1], tokens, x.shape[1])
        counts = [count_targets(labels) for labels in (y, test_y)]
        n_targets, n_special = (sum(part_counts) for part_counts in zip(*counts, strict=True))
        length = "" if x.shape[1] == LENGTH else f" (LEAF's have {LENGTH})"
        notes = [f"{x.shape[1]} words{length}, after each the next one is the target", f"{len(tokens)} tokens"]
        if len(tokens) < self.vocabulary:
            notes.append(f"vocabulary.parquet has fewer words than vocabulary={self.vocabulary:,}")
        notes += difference("users", n_users, min(USERS, key=lambda n: abs(n - n_users)))
        notes += [f"{100 * n_special / n_targets:.1f} % of the targets are {' or '.join(SPECIAL)}", parts.remark]
        return Raw(
            "reddit",
            _take_rows(x, parts.train),
            _take_rows(y, parts.train),
            _take_rows(test_x, parts.test - n_train),
            _take_rows(test_y, parts.test - n_train),
            n_classes=len(tokens),
            train_owner=parts.owner,
            test_owner=parts.test_owner,
            inputs="; ".join(notes),
            pooled_test=parts.test_owner is None,
            targets=Positions((PAD, UNK)),
            single_use=True,
        )


def _take_rows(x: np.ndarray, rows: Ids) -> np.ndarray:
    """Return the rows of `x` at these sorted positions; `x` itself where they are all of its rows."""
    return x if len(rows) == len(x) else x[rows]


def _read_part(frame: Frame, tokens: Any, length: int | None = None) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN401
    """Return a table's inputs, int16 or int32 [rows, T], and targets, int64 [rows, T]. Raises `DataError`.

    length: the required T, that of the training part; None for the training part itself.
    """
    name, target = column_of(frame, "x"), column_of(frame, "y")
    x = read(frame, name, tokens, np.int16 if len(tokens) <= MAX_INT16_TOKENS else np.int32)
    if length is not None and x.shape[1] != length:
        raise frame.blame(name, 0, f"holds {x.shape[1]} words, but the training part's rows {length}")
    y = read(frame, target, tokens, np.int64)
    check_rows(frame, x, y)
    for rows in _blocks(x):
        y[rows][x[rows] == PAD] = UNLABELLED
    return x, y


def count_targets(y: np.ndarray) -> tuple[int, int]:
    """Return the number of targets, and how many of them are <PAD> or <UNK>, which always count as wrong."""
    n_targets = sum(int((y[rows] > UNLABELLED).sum()) for rows in _blocks(y))
    return n_targets, sum(int(np.isin(y[rows], (PAD, UNK)).sum()) for rows in _blocks(y))


def _blocks(x: np.ndarray) -> list[slice]:
    """Return consecutive blocks of rows, which bound the memory of temporary arrays."""
    return [slice(start, start + ROWS) for start in range(0, len(x), ROWS)]


def tokens_of(frame: Frame, max_tokens: int) -> Any:  # noqa: ANN401  pyarrow has no types
    """Return the text of each token as a `pa.Array`: SPECIAL, then the first rows of the vocabulary.

    max_tokens: length of the result at most. Raises `DataError` by row.
    """
    import pyarrow as pa

    name = column_of(frame, "word")
    column = frame.require_full(name)
    if not cells.is_text(column.type):
        raise frame.error(name, f": column {name!r} must hold texts, it holds {column.type}")
    tokens = [*SPECIAL, *column.slice(0, max_tokens - len(SPECIAL)).to_pylist()]
    if len(set(tokens)) < len(tokens):
        position = next(i for i, token in enumerate(tokens) if token in tokens[:i])
        what = f"holds {tokens[position]!r}, which is in the vocabulary already"
        raise frame.blame(name, position - len(SPECIAL), what)
    return pa.array(tokens, pa.string())


def read(frame: Frame, name: str, tokens: Any, dtype: type) -> np.ndarray:  # noqa: ANN401
    """Return the numbers of the tokens in the column `name`, [rows, T]. Raises `DataError` by row.

    Args:
        frame: the table.
        name: a column of lists of texts.
        tokens: the text of each token, a `pa.Array`; other texts become <UNK>.
        dtype: type of the result.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    out: np.ndarray = np.empty((0, 0), dtype)
    start = 0
    for chunk in frame.chunks(name):
        if not (cells.is_list(chunk.type) and cells.is_text(chunk.type.value_type)):
            raise frame.error(name, f": column {name!r} must hold lists of texts, it holds {chunk.type}")
        if not len(chunk):
            continue
        if (gap := cells.empty(pa.chunked_array([chunk]))).any():
            raise frame.blame(name, start + int(gap.argmax()), "is empty")
        lengths = pc.list_value_length(chunk).to_numpy()
        if not start:
            out = np.empty((frame.table.num_rows, int(lengths[0])), dtype)
        has_wrong_length = (lengths != out.shape[1]) | (lengths == 0)
        if has_wrong_length.any():
            row = int(has_wrong_length.argmax())
            raise frame.blame(name, start + row, f"holds {lengths[row]} words, but the first row {out.shape[1]}")
        flat = pc.list_flatten(chunk)
        if flat.null_count:
            row = int(flat.is_null().to_numpy(zero_copy_only=False).argmax()) // out.shape[1]
            raise frame.blame(name, start + row, "holds a missing value")
        numbers = pc.fill_null(pc.index_in(flat, value_set=tokens), UNK).to_numpy()
        out[start : start + len(chunk)] = numbers.reshape(len(chunk), -1)
        start += len(chunk)
    return out


def check_rows(frame: Frame, x: np.ndarray, y: np.ndarray) -> None:
    """Raise `DataError` for a row that is all <PAD>, or whose targets are not its tokens shifted by one."""
    name, target = column_of(frame, "x"), column_of(frame, "y")
    if y.shape != x.shape:
        raise frame.blame(target, 0, f"holds {y.shape[1]} words, but {name!r} {x.shape[1]}")
    for rows in _blocks(x):
        is_padding = (x[rows] == PAD).all(1)
        if is_padding.any():
            raise frame.blame(name, rows.start + int(is_padding.argmax()), f"holds nothing but {SPECIAL[PAD]}")
        differs = (x[rows, 1:] != y[rows, :-1]).any(1)
        if differs.any():
            raise frame.blame(target, rows.start + int(differs.argmax()), f"is not {name!r} shifted by one word")
