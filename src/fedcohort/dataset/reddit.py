"""Comments on Reddit by their authors: after each of ten words, which one comes next (LEAF, Caldas et al. 2018).

    a comment   <BOS> w_1 ... w_n <EOS> <PAD> ...,   cut into sequences x of ten words
    y_p = the word after x_p in its comment, <PAD> after <EOS>;   nothing is asked where x_p is <PAD>
    symbols     0 <PAD>, 1 <UNK>, then the most frequent words of the training part, <BOS> and <EOS> among them
    client k = the k-th user by id, of those with three training sequences or more

The loss of a sequence is the mean cross-entropy over its words, its accuracy the share of them whose next one is found;
<PAD> and <UNK> never count as found, as in LEAF, so that no network comes near 1: the share of such targets is in the
start-up table. From a folder with train.parquet, test.parquet and vocabulary.parquet, as `fedcohort prepare leaf`
writes them: `client`, `x` and `y`, lists of words of one length. Files' parts are taken as they are: LEAF cuts each
user's comments in time, and a comment's sequences belong together. Say model=word_lstm with it.

LEAF's Reddit is of 1,660,820 users with 56,587,343 comments; its sample, which FedBalancer trains on, of 813 users
(Shin et al. 2022, Sec. 4.1: with 32,680 samples). The start-up table tells the difference to the nearer of the two, in
users, as comments of the validation part aren't read, and how many words the vocabulary lacks of `vocabulary`.

LEAF's JSON was read as its code writes it; small files were made of that form, the data were not at hand.

Departures from LEAF: a sample is a sequence, there a comment is one where samples are counted. Means are over
sequences, which weigh alike; LEAF's accuracy is over all words together, and its loss over mini-batches, place by
place. Its vocabulary has <PAD> among the words that it counts, and one word fewer for that.
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
SPECIAL = ("<PAD>", "<UNK>")  # symbols 0 and 1
LENGTH = 10  # of LEAF's sequences
USERS = (813, 1_660_820)  # of LEAF's sample, and of all
SHORT = 2**15  # symbols that two bytes hold


@dataclass(frozen=True)
class Reddit(Dataset):
    """The data set, with its options.

    Attributes:
        path: a local folder; None is refused, as no hub is known to have these tables.
        columns: what the tables call columns otherwise than here, by the names above, or None.
        vocabulary: symbols at most, <PAD> and <UNK> among them.
        users, least: LEAF's rules (`dataset.leaf`), by sequences.
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
        """int16 [N, T] (int32 of large vocabularies), labels [N, T], natural clients. Raises `DataError`."""
        if self.path is None:
            raise DataError(
                "dataset=reddit needs dataset.path, a folder with train.parquet, test.parquet and vocabulary.parquet: "
                "fedcohort prepare leaf makes them of LEAF's JSON"
            )
        *frames, vocabulary = frames_of("reddit", self.path, None, self.columns, ("train", "test", "vocabulary"))
        words = words_of(vocabulary, self.vocabulary)
        owner, given = leaf.people(frames, CLIENT), frames[0].table.num_rows
        rules = leaf.Rules("given", self.users, self.least)
        parts = leaf.divide("reddit", owner, rules, generator(seed, "leaf"), given)
        people = len(np.unique(owner))
        del owner  # which parts have again, of the rows that are used
        x, y = _read_part(frames[0], words)
        test_x, test_y = _read_part(frames[1], words, x.shape[1])
        asked, lost = (sum(counts) for counts in zip(*(count_targets(labels) for labels in (y, test_y)), strict=True))
        length = "" if x.shape[1] == LENGTH else f" (LEAF's have {LENGTH})"
        said = [f"{x.shape[1]} words{length}, after each the next one is the target", f"{len(words)} symbols"]
        said += [f"vocabulary.parquet has fewer words than vocabulary={self.vocabulary:,}"] * (
            len(words) < self.vocabulary
        )
        said += difference("users", people, min(USERS, key=lambda n: abs(n - people)))
        said += [f"{100 * lost / asked:.1f} % of the targets are {' or '.join(SPECIAL)}", parts.remark]
        return Raw(
            "reddit",
            _take_rows(x, parts.train),
            _take_rows(y, parts.train),
            _take_rows(test_x, parts.test - given),
            _take_rows(test_y, parts.test - given),
            n_classes=len(words),
            train_owner=parts.owner,
            test_owner=parts.test_owner,
            inputs="; ".join(said),
            pooled_test=parts.test_owner is None,
            targets=Positions((PAD, UNK)),
            single_use=True,
        )


def _take_rows(x: np.ndarray, rows: Ids) -> np.ndarray:
    """Return these rows, sorted positions without repeats; `x` itself where they are all of it."""
    return x if len(rows) == len(x) else x[rows]


def _read_part(frame: Frame, words: Any, length: int | None = None) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN401
    """The symbols and the targets of one table, int16 (int32 of large vocabularies) and int64. Raises `DataError`.

    length: of the training part's rows, None where it is that.
    """
    name, target = column_of(frame, "x"), column_of(frame, "y")
    x = read(frame, name, words, np.int16 if len(words) <= SHORT else np.int32)
    if length is not None and x.shape[1] != length:
        raise frame.blame(name, 0, f"holds {x.shape[1]} words, and the training part's rows {length}")
    y = read(frame, target, words, np.int64)
    check_rows(frame, x, y)
    for rows in _pieces(x):
        y[rows][x[rows] == PAD] = UNLABELLED
    return x, y


def count_targets(y: np.ndarray) -> tuple[int, int]:
    """How many targets there are, and how many of them nothing is ever right for."""
    asked = sum(int((y[rows] > UNLABELLED).sum()) for rows in _pieces(y))
    return asked, sum(int(np.isin(y[rows], (PAD, UNK)).sum()) for rows in _pieces(y))


def _pieces(x: np.ndarray) -> list[slice]:
    """Rows that are looked at together."""
    return [slice(start, start + ROWS) for start in range(0, len(x), ROWS)]


def words_of(frame: Frame, most: int) -> Any:  # noqa: ANN401  pyarrow has no types
    """The words of symbols 0, 1, ...: SPECIAL, then the first of the vocabulary, `most` together, as a `pa.Array`."""
    import pyarrow as pa

    name = column_of(frame, "word")
    column = frame.require_full(name)
    if not cells.is_text(column.type):
        raise frame.error(name, f": column {name!r} must hold texts, it holds {column.type}")
    words = [*SPECIAL, *column.slice(0, most - len(SPECIAL)).to_pylist()]
    if len(set(words)) < len(words):
        row = next(i for i, word in enumerate(words) if word in words[:i]) - len(SPECIAL)
        raise frame.blame(name, row, f"holds {words[row + len(SPECIAL)]!r}, which has a symbol already")
    return pa.array(words, pa.string())


def read(frame: Frame, name: str, words: Any, kind: type) -> np.ndarray:  # noqa: ANN401
    """The symbols in the column `name`, of this kind, [rows, T]. Raises `DataError` by row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    out: np.ndarray = np.empty((0, 0), kind)
    start = 0
    for chunk in frame.chunks(name):
        if not (cells.is_list(chunk.type) and cells.is_text(chunk.type.value_type)):
            raise frame.error(name, f": column {name!r} must hold lists of words, it holds {chunk.type}")
        if not len(chunk):
            continue
        if (gap := cells.empty(pa.chunked_array([chunk]))).any():
            raise frame.blame(name, start + int(gap.argmax()), "is empty")
        lengths = pc.list_value_length(chunk).to_numpy()
        if not start:
            out = np.empty((frame.table.num_rows, int(lengths[0])), kind)
        odd = (lengths != out.shape[1]) | (lengths == 0)
        if odd.any():
            row = int(odd.argmax())
            raise frame.blame(name, start + row, f"holds {lengths[row]} words, and the first row {out.shape[1]}")
        flat = pc.list_flatten(chunk)
        if flat.null_count:
            row = int(flat.is_null().to_numpy(zero_copy_only=False).argmax()) // out.shape[1]
            raise frame.blame(name, start + row, "holds a word that is missing")
        symbols = pc.fill_null(pc.index_in(flat, value_set=words), UNK).to_numpy()
        out[start : start + len(chunk)] = symbols.reshape(len(chunk), -1)
        start += len(chunk)
    return out


def check_rows(frame: Frame, x: np.ndarray, y: np.ndarray) -> None:
    """Raise `DataError` for a row whose targets are not those of its words, or where nothing is asked."""
    name, target = column_of(frame, "x"), column_of(frame, "y")
    if y.shape != x.shape:
        raise frame.blame(target, 0, f"holds {y.shape[1]} words, and {name!r} {x.shape[1]}")
    for rows in _pieces(x):
        idle = (x[rows] == PAD).all(1)
        if idle.any():
            raise frame.blame(name, rows.start + int(idle.argmax()), f"holds nothing but {SPECIAL[PAD]}")
        apart = (x[rows, 1:] != y[rows, :-1]).any(1)
        if apart.any():
            raise frame.blame(target, rows.start + int(apart.argmax()), f"is not {name!r} moved on by one word")
