"""Next-character prediction on Shakespeare's plays, with a client for each speaking role (LEAF, Caldas et al. 2018).

    x_i = characters i to i + 79 of a role's joined lines,   y_i = character i + 80,   i = 0, step, 2 step, ...

The 80 classes are the letters, digits and punctuation marks of `ALPHABET`, the space and the line break. Any other
character is read as a space. Characters are in memory as bytes, which model=char_lstm embeds.

Client k is the k-th role by id among the roles with three training sequences or more. The test part depends on the
option `test` (`dataset.leaf`):
- given: the parts of the files.
- sample: the last tenth of each role's sequences. The sequences before it that share a character with it are left out.
- user: all sequences of a tenth of the roles.

test=sample splits in time because overlapping sequences would otherwise be in both parts. Validation sequences are
drawn at random: with a step below 81 nearly all of them are training sequences shifted by a few characters, so that
`server_val/*` does not reveal overfitting.

The tables are train.parquet and test.parquet in a folder, in one of two layouts:
- Lines: columns `role` and `line`, in the order of the play.
- LEAF's sequences: columns `client` or `character_id`, `x` (80 characters) and `y` (one), as `fedcohort prepare leaf`
  writes them. The Hugging Face hub has these in a single part, which excludes test=given.

LEAF's text has 4,226,158 sequences of 1,129 roles; FedBalancer uses a fifth of them. The start-up table states
differences from these counts for LEAF's sequences and for lines with step=1. With test=given it does not, since LEAF
leaves out the sequences that both parts would share.

Lines were tested on 37 plays of another edition than LEAF's. Results on them are not comparable with papers on LEAF's
text. LEAF's sequences were tested on small synthetic files only.

Departures from LEAF: it also splits at 0.9 of a role's sequences, but leaves out 79 of them; here as many are left out
as share a character, 80 with step=1. How LEAF treats characters outside of its 80 is not documented.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8

from fedcohort import ranges
from fedcohort.dataset import arrow_columns, leaf
from fedcohort.dataset.base import Raw
from fedcohort.dataset.files import release_unused_memory
from fedcohort.dataset.source import find_column, frame_has_column
from fedcohort.dataset.table import Frame
from fedcohort.rng import new_generator
from fedcohort.types import Ids

ALPHABET = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
SEQUENCE_LENGTH = 80
N_LEAF_SEQUENCES, N_LEAF_ROLES = 4_226_158, 1_129  # of LEAF's text
TOKEN_OF_CODE_POINT = np.full(256, len(ALPHABET), np.uint8)  # len(ALPHABET) stands for other characters
TOKEN_OF_CODE_POINT[[ord(c) for c in ALPHABET]] = np.arange(len(ALPHABET))


@dataclass(frozen=True)
class Shakespeare(leaf.LeafDataset):
    """Next-character prediction on Shakespeare's plays, with a natural client per speaking role.

    Attributes:
        step: number of characters between the starts of consecutive sequences, if the tables hold lines.
    """

    name, client_columns = "shakespeare", ("role", "client", "character_id")
    column_names = (client_columns, ("line", "x"), ("line", "y"))

    step: int

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("step", self.step, "[1, inf)")

    def load(self, seed: int) -> Raw:
        """Return sequences as uint8 [N, 80], their next characters as labels in [0, 80), and natural clients (roles).

        Args:
            seed: seed from which the roles, and training or test samples, are drawn.

        Raises:
            DataError: a table is missing, or a text is empty or has a wrong length; the message names the row.
        """
        frames = self.read_pooled_frames()
        roles = self.read_people(frames)
        has_lines = frame_has_column(frames[0], "line") and not {"x", "y"} & frames[0].column_renames.keys()
        sequences = (
            join_role_lines(frames, roles, self.test == "given", self.step)
            if has_lines
            else read_sequences(frames, roles)
        )
        # Two sequences with their labels, 81 characters, share characters up to a distance of 80 between their starts.
        n_gap_sequences = SEQUENCE_LENGTH // self.step if has_lines else SEQUENCE_LENGTH
        owners, n_file_train_sequences = sequences.roles, sequences.n_file_train_sequences
        row_split = self.split_train_test(owners, new_generator(seed, "leaf"), n_file_train_sequences, n_gap_sequences)
        data_notes = [f"{SEQUENCE_LENGTH} characters, the next one is the label", row_split.people_note]
        data_notes += [f"{sequences.n_other_characters:,} other characters are spaces"] * bool(
            sequences.n_other_characters
        )
        data_notes += ["validation sequences overlap training sequences"] * (
            not has_lines or self.step <= SEQUENCE_LENGTH
        )
        if not has_lines or self.step == 1:
            size_comparisons = (
                ("sequences", len(owners), N_LEAF_SEQUENCES),
                ("roles", len(np.unique(owners)), N_LEAF_ROLES),
            )
            data_notes += self.describe_size_differences(*size_comparisons)
        release_unused_memory()
        return Raw(
            self.name,
            *sequences.select_sequences(row_split.train_rows),
            *sequences.select_sequences(row_split.test_rows),
            n_classes=len(ALPHABET),
            **row_split.raw_client_fields,
            inputs="; ".join(data_notes),
            class_names=tuple({"\n": "line break", " ": "space"}.get(c, c) for c in ALPHABET),
            revision=frames[0].revision,
            single_use=True,
        )


@dataclass(frozen=True)
class Sequences:
    """Sequences of 80 characters with the character after each, stored as positions in a text.

    Attributes:
        character_codes: position in `ALPHABET` of each character of all texts, one text after the other.
        sequence_starts: position of each sequence's first character in `character_codes`, int64 [N].
        roles: number of the speaking role of each sequence, which is its client, int64 [N].
        n_file_train_sequences: number of sequences in the files' training part, which come first.
        n_other_characters: number of characters outside of `ALPHABET`, which became spaces.
    """

    character_codes: UInt8[np.ndarray, "characters"]
    sequence_starts: Ids
    roles: Ids
    n_file_train_sequences: int
    n_other_characters: int

    def select_sequences(self, sequence_ids: Ids) -> tuple[UInt8[np.ndarray, "n 80"], Ids]:
        """Return the characters of the sequences `sequence_ids` [n], and the character after each one, int64 [n]."""
        selected_starts = self.sequence_starts[sequence_ids]
        sequence_views = np.lib.stride_tricks.sliding_window_view(self.character_codes, SEQUENCE_LENGTH)
        return sequence_views[selected_starts], self.character_codes[selected_starts + SEQUENCE_LENGTH].astype(np.int64)


def join_role_lines(
    frames: Sequence[Frame], roles: Ids, separates_train_and_test_lines: bool, sequence_stride: int
) -> Sequences:
    """Join each role's lines to one text, in the order of the tables, and return the sequences of all texts.

    Args:
        frames: the tables of all parts; with `separates_train_and_test_lines` the training and the test table.
        roles: number of the speaking role of each line, which is its client, int64 [lines].
        separates_train_and_test_lines: whether a role's lines in train.parquet and in test.parquet are two texts, not
            one. This is so with test=given, where the two files are the training and the test part.
        sequence_stride: number of characters between the starts of consecutive sequences.
    """
    lines: list[str] = []
    for frame in frames:
        for _, chunk_lines in _read_text_chunks(frame, find_column(frame, "line")):
            lines += chunk_lines
    is_test_line = (np.arange(len(lines)) >= frames[0].table.num_rows) & separates_train_and_test_lines
    line_order = np.lexsort((roles, is_test_line))
    role_text_starts = np.flatnonzero(np.diff(roles[line_order]) | np.diff(is_test_line[line_order])) + 1
    lines_by_text = np.split(line_order, role_text_starts)
    encoded_texts = [encode_text(" ".join(lines[i] for i in line_ids)) for line_ids in lines_by_text]
    text_lengths = np.array([len(character_codes) for character_codes, _ in encoded_texts])
    n_sequences = np.maximum(0, (text_lengths - SEQUENCE_LENGTH - 1) // sequence_stride + 1)
    rank_in_text = np.arange(n_sequences.sum()) - np.repeat(np.cumsum(n_sequences) - n_sequences, n_sequences)
    sequence_starts = np.repeat(np.cumsum(text_lengths) - text_lengths, n_sequences) + sequence_stride * rank_in_text
    owner_of_sequence = np.repeat(
        np.array([roles[line_ids[0]] for line_ids in lines_by_text], dtype=np.int64), n_sequences
    )
    n_file_train_sequences = sum(
        int(n) for n, line_ids in zip(n_sequences, lines_by_text, strict=True) if not is_test_line[line_ids[0]]
    )
    character_codes = np.concatenate([character_codes for character_codes, _ in encoded_texts])
    return Sequences(
        character_codes, sequence_starts, owner_of_sequence, n_file_train_sequences, sum(n for _, n in encoded_texts)
    )


def read_sequences(frames: Sequence[Frame], roles: Ids) -> Sequences:
    """Read LEAF's sequences of 80 characters, and the character after each sequence.

    Args:
        frames: tables with 80 characters in the column `x` and one in `y`.
        roles: number of the speaking role, which is the client, of each row of the tables, one table after the other,
            int64 [rows].

    Raises:
        DataError: a text has a wrong length; the message names its row.
    """
    character_codes = np.empty((len(roles), SEQUENCE_LENGTH + 1), np.uint8)
    frame_start, n_other_characters = 0, 0
    for frame in frames:
        for column_name, character_columns in (("x", slice(SEQUENCE_LENGTH)), ("y", slice(SEQUENCE_LENGTH, None))):
            required_length = character_codes[:1, character_columns].size
            for chunk_start, chunk_texts in _read_text_chunks(frame, find_column(frame, column_name), required_length):
                text_codes, n_chunk_other_characters = encode_text("".join(chunk_texts))
                character_rows = slice(frame_start + chunk_start, frame_start + chunk_start + len(chunk_texts))
                character_codes[character_rows, character_columns] = text_codes.reshape(len(chunk_texts), -1)
                n_other_characters += n_chunk_other_characters
        frame_start += frame.table.num_rows
    sequence_starts = np.arange(len(roles)) * (SEQUENCE_LENGTH + 1)
    return Sequences(character_codes.ravel(), sequence_starts, roles, frames[0].table.num_rows, n_other_characters)


def _read_text_chunks(frame: Frame, column: str, required_length: int | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the texts of a column in chunks, each with the number of its first row.

    Args:
        frame: table that has the column.
        column: name of the column.
        required_length: required number of characters of each text; None for any number above 0.

    Raises:
        DataError: the column holds no texts, or a text is empty or has a wrong length; the message names its row.
    """
    import pyarrow.compute as pc

    for chunk_start, chunk in frame.read_chunks(column, allow_empty_cells=True):
        if not arrow_columns.is_text_type(chunk.type):
            raise frame.column_error(column, f": column {column!r} must hold texts, but holds {chunk.type}")
        text_lengths: Any = pc.fill_null(pc.utf8_length(chunk), 0).to_numpy(zero_copy_only=False)
        frame.check_cells(column, text_lengths == 0, lambda row: "is empty: remove it", chunk_start)
        if required_length is not None:
            has_wrong_length, length_problem = (
                text_lengths != required_length,
                f"characters; it must hold {required_length}",
            )
            frame.check_cells(
                column,
                has_wrong_length,
                lambda row: f"holds {text_lengths[row]} {length_problem}",  # noqa: B023
                chunk_start,
            )
        yield chunk_start, chunk.to_pylist()


def encode_text(play_text: str) -> tuple[UInt8[np.ndarray, "characters"], int]:
    """Return each character's position in `ALPHABET`, and the count of other characters, which become spaces."""
    code_points = np.frombuffer(play_text.encode("utf-32-le"), dtype="<u4")
    character_codes = TOKEN_OF_CODE_POINT[np.minimum(code_points, len(TOKEN_OF_CODE_POINT) - 1)]
    is_unknown_character = character_codes == len(ALPHABET)
    character_codes[is_unknown_character] = ALPHABET.index(" ")
    return character_codes, int(is_unknown_character.sum())
