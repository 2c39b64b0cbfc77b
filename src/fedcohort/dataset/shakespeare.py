"""Next-character prediction on Shakespeare's plays, with a client for each speaking role (LEAF, Caldas et al. 2018).

    x_i = characters i to i + 79 of a role's joined lines,   y_i = character i + 80,   i = 0, step, 2 step, ...

The 80 classes are the letters, digits and punctuation marks of `CHARACTERS`, the space and the line break. Any other
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
from fedcohort.dataset import cells, leaf
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.files import give_back
from fedcohort.dataset.people import Source
from fedcohort.dataset.source import Columns, check_columns, column_of, has_column
from fedcohort.dataset.table import Frame, text
from fedcohort.rng import generator
from fedcohort.types import Ids

CHARACTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
LENGTH = 80
N_SEQUENCES, N_ROLES = 4_226_158, 1_129  # of LEAF's text
BLOCK = 10_000  # sequences that are read or copied in one step, which bounds the memory
ROLE, PARTS = ("role", "client", "character_id"), ("train",)
CODE_TABLE = np.full(256, len(CHARACTERS), np.uint8)  # number of each code point; len(CHARACTERS) for other characters
CODE_TABLE[[ord(c) for c in CHARACTERS]] = np.arange(len(CHARACTERS))


@dataclass(frozen=True)
class Shakespeare(Dataset):
    """The dataset with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name on the hub.
        columns: the tables' names of columns, by the names above; None if they are the same.
        test, users, least: LEAF's rules (`dataset.leaf`).
        step: characters between the starts of consecutive sequences, where the tables hold lines.
    """

    path: str | None
    hub: str
    columns: Columns | None
    test: str
    users: float
    least: int
    step: int

    def __post_init__(self) -> None:
        text("path", self.path, optional=True)
        text("hub", self.hub)
        check_columns(self.columns, ROLE, ("line", "x"), ("line", "y"))
        leaf.Rules(self.test, self.users, self.least)
        ranges.integer("step", self.step, "[1, inf)")

    def load(self, seed: int) -> Raw:
        """Return uint8 [N, 80], 80 classes, natural clients; the roles are drawn. Raises `DataError`."""
        rules, use_file_parts = leaf.Rules(self.test, self.users, self.least), self.test == "given"
        frames = Source(self.path, self.hub, self.columns, PARTS).frames("shakespeare", use_file_parts)
        roles = leaf.people(frames, ROLE)
        has_lines = has_column(frames[0], "line") and not {"x", "y"} & frames[0].renamed.keys()
        rng = generator(seed, "leaf")
        if has_lines:
            sequences, n_replaced = read_lines(frames, roles, use_file_parts, self.step)
            n_sequences, n_roles = len(sequences.owner), len(np.unique(sequences.owner))
            gap = -(-LENGTH // self.step)
            parts = leaf.divide("shakespeare", sequences.owner, rules, rng, sequences.n_train_file, gap)
            give_back()
            (x, y), (test_x, test_y) = (sequences.copy(rows) for rows in (parts.train, parts.test))
            del sequences
        else:
            n_sequences, n_roles = len(roles), len(np.unique(roles))
            parts = leaf.divide("shakespeare", roles, rules, rng, frames[0].table.num_rows, LENGTH)
            del roles  # takes a tenth of the memory of the sequences
            give_back()
            ((x, y), (test_x, test_y)), n_replaced = read_sequences(frames, (parts.train, parts.test))
        notes = [f"{LENGTH} characters, the next one is the label", parts.remark]
        notes += [f"{n_replaced:,} other characters are spaces"] * bool(n_replaced)
        notes += ["validation sequences overlap training sequences"] * (not has_lines or self.step <= LENGTH)
        if not has_lines or self.step == 1:
            notes += leaf.compare(rules, ("sequences", n_sequences, N_SEQUENCES), ("roles", n_roles, N_ROLES))
        return Raw(
            "shakespeare",
            x,
            y,
            test_x,
            test_y,
            n_classes=len(CHARACTERS),
            train_owner=parts.owner,
            test_owner=parts.test_owner,
            inputs="; ".join(notes),
            class_names=tuple({"\n": "line break", " ": "space"}.get(c, c) for c in CHARACTERS),
            pooled_test=parts.test_owner is None,
            revision=frames[0].revision,
            single_use=True,
        )


@dataclass(frozen=True)
class Sequences:
    """Overlapping sequences, stored as positions in their texts.

    Attributes:
        codes: the numbers of the characters of all texts, one text after the other.
        starts: position of each sequence's first character in `codes`, int64 [N].
        owner: role of each sequence, int64 [N].
        n_train_file: number of sequences in the files' training part, which come first.
    """

    codes: UInt8[np.ndarray, "characters"]
    starts: Ids
    owner: Ids
    n_train_file: int

    def copy(self, rows: Ids) -> tuple[UInt8[np.ndarray, "n 80"], Ids]:
        """Return the characters of the sequences `rows`, and the character after each sequence, int64 [n]."""
        windows = np.lib.stride_tricks.sliding_window_view(self.codes, LENGTH + 1)
        x = np.empty((len(rows), LENGTH), np.uint8)
        for start in range(0, len(rows), BLOCK):
            block = slice(start, start + BLOCK)
            x[block] = windows[self.starts[rows[block]], :LENGTH]
        return x, self.codes[self.starts[rows] + LENGTH].astype(np.int64)


def read_lines(frames: Sequence[Frame], roles: Ids, use_file_parts: bool, step: int) -> tuple[Sequences, int]:
    """Join each role's lines to one text, in the order of the tables, and return the sequences of all texts.

    Args:
        frames: the training table and, where there is one, the test table.
        roles: the role of each line, int64 [lines].
        use_file_parts: whether a role's lines of each table are a separate text.
        step: characters between the starts of consecutive sequences.

    Returns:
        The sequences, and how many characters are outside of `CHARACTERS` and became spaces.
    """
    lines: list[str] = []
    for frame in frames:
        name = column_of(frame, "line")
        lines += _texts_of(frame, name, frame.column(name), 0)
    n_train_lines = frames[0].table.num_rows
    part = (np.arange(len(lines)) >= n_train_lines) if use_file_parts else np.zeros(len(lines), dtype=bool)
    order = np.lexsort((roles, part))
    cuts = np.flatnonzero(np.diff(roles[order]) | np.diff(part[order])) + 1
    groups = np.split(order, cuts)
    texts = [encode(" ".join(lines[i] for i in group)) for group in groups]
    n_train_texts = sum(not part[group[0]] for group in groups)
    lengths = np.array([len(codes) for codes, _ in texts])
    counts = np.maximum(0, (lengths - LENGTH - 1) // step + 1)
    rank_in_text = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(np.cumsum(lengths) - lengths, counts) + step * rank_in_text
    owner = np.repeat(np.array([roles[group[0]] for group in groups], dtype=np.int64), counts)
    all_codes = np.concatenate([codes for codes, _ in texts])
    sequences = Sequences(all_codes, starts, owner, int(counts[:n_train_texts].sum()))
    return sequences, sum(n_replaced for _, n_replaced in texts)


def read_sequences(frames: Sequence[Frame], parts: Sequence[Ids]) -> tuple[list[tuple[np.ndarray, Ids]], int]:
    """Read LEAF's sequences, and the character after each sequence, of each part. Raises `DataError` by row.

    Args:
        frames: the tables.
        parts: for each part its rows, counted over all tables together, sorted.

    Returns:
        Inputs, uint8 [n, 80], and labels, int64 [n], of each part; and how many characters of all tables became spaces.
    """
    samples = [(np.empty((len(rows), LENGTH), np.uint8), np.empty(len(rows), np.int64)) for rows in parts]
    frame_start, n_replaced = 0, 0
    for frame in frames:
        for name, position, length in (("x", 0, LENGTH), ("y", 1, 1)):
            for row, codes, n_in_block in _encode_blocks(frame, column_of(frame, name), length):
                n_replaced += n_in_block
                start = frame_start + row
                for rows, arrays in zip(parts, samples, strict=True):
                    first, last = np.searchsorted(rows, (start, start + len(codes)))
                    part_codes = codes[rows[first:last] - start]
                    arrays[position][first:last] = part_codes if length > 1 else part_codes[:, 0]
        frame_start += frame.table.num_rows
    return samples, n_replaced


def _encode_blocks(frame: Frame, name: str, length: int) -> Iterator[tuple[int, np.ndarray, int]]:
    """Yield blocks of a column of texts of one length. Raises `DataError` by row.

    A block is its first row, its characters as numbers, uint8 [rows, length], and how many became spaces.
    """
    start = 0
    blocks = (chunk.slice(row, BLOCK) for chunk in frame.chunks(name) for row in range(0, len(chunk), BLOCK))
    for block in blocks:
        texts = _texts_of(frame, name, block, start)
        wrong_row = next((row for row, line in enumerate(texts) if len(line) != length), None)
        if wrong_row is not None:
            n = len(texts[wrong_row])
            raise frame.blame(name, start + wrong_row, f"holds {n} characters; it must hold {length}")
        codes, n_replaced = encode("".join(texts))
        yield start, codes.reshape(len(texts), length), n_replaced
        start += len(texts)


def _texts_of(frame: Frame, name: str, column: Any, start: int) -> list[str]:  # noqa: ANN401  pyarrow has no types
    """Return the texts of a column, or of a block of its rows that begins at row `start`. Raises `DataError` by row."""
    if not cells.is_text(column.type):
        raise frame.error(name, f": column {name!r} must hold texts, it holds {column.type}")
    texts: list[str] = column.to_pylist()
    empty_row = next((row for row, line in enumerate(texts) if not line), None)
    if empty_row is not None:
        raise frame.blame(name, start + empty_row, "is empty")
    return texts


def encode(characters: str) -> tuple[UInt8[np.ndarray, "characters"], int]:
    """Return the number of each character, and how many are outside of `CHARACTERS` and became spaces."""
    points = np.frombuffer(characters.encode("utf-32-le"), dtype="<u4")
    codes = CODE_TABLE[np.minimum(points, len(CODE_TABLE) - 1)]
    is_unknown = codes == len(CHARACTERS)
    codes[is_unknown] = CHARACTERS.index(" ")
    return codes, int(is_unknown.sum())
