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

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcohort import ranges
from fedcohort.data.targets import UNLABELLED_POSITION, PerPositionTargets
from fedcohort.dataset import arrow_columns, leaf
from fedcohort.dataset.base import Raw
from fedcohort.dataset.messages import note_count_difference
from fedcohort.dataset.source import find_column
from fedcohort.dataset.table import Frame
from fedcohort.rng import new_generator

PAD_TOKEN, UNKNOWN_TOKEN = 0, 1
SPECIAL_TOKENS = ("<PAD>", "<UNK>")  # tokens 0 and 1
LEAF_SEQUENCE_LENGTH = 10  # tokens of LEAF's sequences
ORIGINAL_USER_COUNTS = (813, 1_660_820)  # of LEAF's subset, and of all its data
MAX_INT16_TOKENS = 2**15  # vocabulary size up to which tokens are int16


@dataclass(frozen=True)
class Reddit(leaf.LeafDataset):
    """Next-word prediction on Reddit comments, with a client for each author; `path` is required.

    Attributes:
        vocabulary: largest number of tokens, including <PAD> and <UNK>.
    """

    name, client_columns = "reddit", ("client",)
    column_names = (client_columns, ("x",), ("y",), ("word",))

    hub: str | None = field(init=False, default=None)
    test: str = field(init=False, default="given")
    vocabulary: int

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("vocabulary", self.vocabulary, "[3, 1e9]")

    def load(self, seed: int) -> Raw:
        """Return tokens [N, T] as int16 (int32 for large vocabularies), their targets [N, T], and natural clients.

        Args:
            seed: seed of the order of users, from which the share `users` is taken.

        Raises:
            DataError: a table is missing, or a row is invalid; the message names the row.
        """
        train_frame, test_frame, vocabulary_frame = self.read_frames(("train", "test", "vocabulary"))
        tokens = read_vocabulary(vocabulary_frame, self.vocabulary)
        user_of_row, n_train_rows = self.read_people([train_frame, test_frame]), train_frame.table.num_rows
        row_split = self.split_train_test(user_of_row, new_generator(seed, "leaf"), n_train_rows)
        n_users = len(np.unique(user_of_row))
        x, y = read_sequences(train_frame, tokens)
        test_x, test_y = read_sequences(test_frame, tokens, x.shape[1])
        n_targets = sum(int((target_tokens > UNLABELLED_POSITION).sum()) for target_tokens in (y, test_y))
        n_special_targets = sum(
            int(np.isin(target_tokens, (PAD_TOKEN, UNKNOWN_TOKEN)).sum()) for target_tokens in (y, test_y)
        )
        length_note = "" if x.shape[1] == LEAF_SEQUENCE_LENGTH else f" (LEAF's have {LEAF_SEQUENCE_LENGTH})"
        data_notes = [
            f"{x.shape[1]} words{length_note}, after each the next one is the target",
            f"{len(tokens)} tokens",
        ]
        if len(tokens) < self.vocabulary:
            data_notes.append(f"vocabulary.parquet has fewer words than vocabulary={self.vocabulary:,}")
        data_notes += note_count_difference("users", n_users, min(ORIGINAL_USER_COUNTS, key=lambda n: abs(n - n_users)))
        data_notes += [
            f"{100 * n_special_targets / n_targets:.1f} % of the targets are {' or '.join(SPECIAL_TOKENS)}",
            row_split.people_note,
        ]
        test_rows = row_split.test_rows - n_train_rows
        return Raw(
            *(self.name, x[row_split.train_rows], y[row_split.train_rows], test_x[test_rows], test_y[test_rows]),
            n_classes=len(tokens),
            inputs="; ".join(data_notes),
            **row_split.raw_client_fields,
            targets=PerPositionTargets((PAD_TOKEN, UNKNOWN_TOKEN)),
            single_use=True,
        )


def read_vocabulary(frame: Frame, max_tokens: int) -> Any:  # noqa: ANN401  pyarrow has no types
    """Return the text of each token as a `pa.Array`: <PAD>, <UNK>, and the first rows of the vocabulary.

    Args:
        frame: table of the tokens' texts, the most frequent first.
        max_tokens: largest length of the result.

    Raises:
        DataError: the column holds no texts, or a token's text is empty or occurs twice; the message names the row.
    """
    import pyarrow as pa

    column_name = find_column(frame, "word")
    word_column = frame.read_filled_column(column_name)
    if not arrow_columns.is_text_type(word_column.type):
        raise frame.column_error(column_name, f": column {column_name!r} must hold texts, but holds {word_column.type}")
    tokens = [*SPECIAL_TOKENS, *word_column.slice(0, max_tokens - len(SPECIAL_TOKENS)).to_pylist()]
    if len(set(tokens)) < len(tokens):
        token_position = next(i for i, token in enumerate(tokens) if token in tokens[:i])
        token_problem = (
            f"holds {tokens[token_position]!r}, which occurs before in the vocabulary: remove one of the rows"
        )
        raise frame.cell_error(column_name, token_position - len(SPECIAL_TOKENS), token_problem)
    return pa.array(tokens, pa.string())


def read_sequences(frame: Frame, tokens: Any, n_tokens: int | None = None) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN401
    """Return a table's inputs, int16 or int32 [rows, T], and its targets, int64 [rows, T], as numbers of tokens.

    Targets are UNLABELLED_POSITION where the input is <PAD>.

    Args:
        frame: table of sequences, in the columns x and y.
        tokens: text of each token, a `pa.Array`.
        n_tokens: required number of tokens in a row, T, that of the training part; None for the training part itself.

    Raises:
        DataError: a row has a wrong length, is all <PAD>, or its targets are not its tokens shifted by one.
    """
    input_column, target_column = find_column(frame, "x"), find_column(frame, "y")
    x = read_tokens(frame, input_column, tokens, np.int16 if len(tokens) <= MAX_INT16_TOKENS else np.int32)
    if n_tokens is not None and x.shape[1] != n_tokens:
        raise frame.cell_error(
            input_column, 0, f"holds {x.shape[1]} words, but must hold {n_tokens} like the training part"
        )
    y = read_tokens(frame, target_column, tokens, np.int64)
    if y.shape != x.shape:
        raise frame.cell_error(
            target_column, 0, f"holds {y.shape[1]} words, but must hold {x.shape[1]} like {input_column!r}"
        )
    frame.check_cells(
        input_column, (x == PAD_TOKEN).all(1), lambda row: f"holds only {SPECIAL_TOKENS[PAD_TOKEN]}: remove it"
    )
    frame.check_cells(
        target_column,
        (x[:, 1:] != y[:, :-1]).any(1),
        lambda row: f"is not {input_column!r} shifted by one word: correct it",
    )
    y[x == PAD_TOKEN] = UNLABELLED_POSITION
    return x, y


def read_tokens(frame: Frame, column: str, tokens: Any, dtype: type) -> np.ndarray:  # noqa: ANN401
    """Return the token numbers of a column of lists of texts, [rows, T], where T is the length of the first list.

    Args:
        frame: table that has the column.
        column: name of a column of lists of texts.
        tokens: text of each token, a `pa.Array`; other texts become <UNK>.
        dtype: type of the result.

    Raises:
        DataError: a row has a wrong length or a missing text; the message names it.
    """
    import pyarrow.compute as pc

    token_ids: np.ndarray = np.empty((0, 0), dtype)
    for chunk_start, chunk in frame.read_chunks(column):
        if not (arrow_columns.is_list_type(chunk.type) and arrow_columns.is_text_type(chunk.type.value_type)):
            raise frame.column_error(column, f": column {column!r} must hold lists of texts, but holds {chunk.type}")
        n_words = pc.list_value_length(chunk).to_numpy()
        if not chunk_start:
            token_ids = np.empty((frame.table.num_rows, int(n_words[0])), dtype)
        T = token_ids.shape[1]
        has_wrong_length = (n_words != T) | (n_words == 0)
        length_problem = f"holds {{}} words, but must hold {T} like the first row"
        frame.check_cells(column, has_wrong_length, lambda row: length_problem.format(n_words[row]), chunk_start)  # noqa: B023
        chunk_words = pc.list_flatten(chunk)
        has_missing_word = np.asarray(np.asarray(chunk_words.is_null()).reshape(-1, T).any(1))
        frame.check_cells(column, has_missing_word, lambda row: "holds a missing value: fill it", chunk_start)
        word_numbers = pc.fill_null(pc.index_in(chunk_words, value_set=tokens), UNKNOWN_TOKEN)
        token_ids[chunk_start : chunk_start + len(chunk)] = np.asarray(word_numbers).reshape(-1, T)
    return token_ids
