"""Convert LEAF's JSON: SRC/train/*.json and SRC/test/*.json, or SRC/*.json as one part.

    {"users": [...], "num_samples": [...], "user_data": {user: {"x": [...], "y": [...]}}}

Columns: `client`, `x` (lists of numbers, or texts), `y`. In FEMNIST and Synthetic x are numbers, in Shakespeare texts
of 80 characters. In CelebA x are file names of images, which `fedcohort prepare celeba` converts.

In Reddit x are comments, each a list of sequences of ten tokens, and y are objects with a comment's targets:

    x [[["<BOS>", "so", ...], [..., "<EOS>", "<PAD>"]], ...],   y [{"target_tokens": [[...], ...], ...}, ...]

Each sequence becomes a row: its tokens, `x`, and their targets, `y`, a list of the same length. The other fields of a
comment and SRC/val are left out. Reddit's num_samples count all three parts together and are not checked.

The tokens of Reddit's training part are counted in vocabulary.parquet, with the columns `word` and `count`, in order of
falling counts. Equal counts are in the order of code points. <PAD>, which fills sequences up, and <UNK>, which
replaces rare tokens, are not counted. A dataset uses the first rows, as many as its option `vocabulary` allows.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort.arrays import MAX_FLOAT32
from fedcohort.dataset.raw.pieces import TablePiece, size_and_time
from fedcohort.dataset.raw.source import IMAGE_SUFFIXES, check_file, list_subfolders, log_unused_files
from fedcohort.errors import DataError
from fedcohort.host import disk, parquet

UNIQUE_CLIENT_COLUMN = "client"  # all samples of a user in a part must be in one file
REQUIRED_JSON_KEYS = ("user_data", "users", "num_samples")
FILLER_TOKENS = ("<PAD>", "<UNK>")  # tokens that fill sequences up, and that replace rare tokens


def plan_table_pieces(raw_dir: Path, image_size: int | None) -> list[TablePiece]:
    """Return the pieces of the tables to write from LEAF's JSON, one piece for each file.

    Args:
        raw_dir: folder of JSON files, or with the folders `train` and `test` of JSON files.
        image_size: must be None, as there are no images to resize.

    Raises:
        DataError: there is no JSON file, or `image_size` is set.
    """
    if image_size is not None:
        raise DataError("size= resizes image files, but LEAF's JSON holds none: leave size= out")
    files = [("train", file) for file in _list_json_files(raw_dir, raw_dir)]
    if (raw_dir / "train").is_dir():
        log_unused_files(raw_dir, [file.name for _, file in files])
        part_folders = [folder for folder in list_subfolders(raw_dir, raw_dir) if folder.name in ("train", "test")]
        files = [(folder.name, file) for folder in reversed(part_folders) for file in _list_json_files(raw_dir, folder)]
    if not files:
        raise DataError(f"{raw_dir} has no JSON files: train/*.json and test/*.json, or *.json, are expected")
    return [
        TablePiece(part, f"{file.name} {size_and_time(file)}", partial(_make_leaf_table, file)) for part, file in files
    ]


def _list_json_files(raw_dir: Path, folder: Path) -> list[Path]:
    """Return the JSON files in `folder`, sorted by name.

    `folder` is `raw_dir`, or lies in it. The number of a subfolder's other files is logged.
    """
    file_names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if folder != raw_dir:
        log_unused_files(folder, [file_name for file_name in file_names if not file_name.endswith(".json")])
    return [
        check_file(raw_dir, (folder / file_name).relative_to(raw_dir))
        for file_name in file_names
        if file_name.endswith(".json")
    ]


def _make_leaf_table(file: Path) -> Any:  # noqa: ANN401  pyarrow has no types
    """Return the samples of a JSON file as a `pa.Table` with the columns client, x and y, user by user.

    Raises `DataError` for an invalid sample; the message names its user.
    """
    import pyarrow as pa

    samples = list(_read_samples(file))
    if not samples:
        raise DataError(f"{file} holds no samples: remove the file")
    clients, x, y = zip(*samples, strict=True)
    has_sequences = isinstance(y[0], list)
    try:
        input_type = pa.string() if isinstance(x[0], str) else pa.list_(pa.string() if has_sequences else pa.float32())
        label_type = pa.list_(pa.string()) if has_sequences else pa.string() if isinstance(y[0], str) else pa.int64()
        return pa.table({"client": clients, "x": pa.array(x, input_type), "y": pa.array(y, label_type)})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{file}: x and y must each have one type in all samples ({str(error).splitlines()[0]}): correct the file"
        ) from error


def _reject_repeated_keys(json_pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object with these pairs of key and value. Raises `ValueError` for a repeated key."""
    json_keys = [json_key for json_key, _ in json_pairs]
    if len(set(json_keys)) < len(json_keys):
        raise ValueError(
            f"the key {next(json_key for json_key in json_keys if json_keys.count(json_key) > 1)!r} occurs twice"
        )
    return dict(json_pairs)


def _read_samples(file: Path) -> Iterator[tuple[str, Any, Any]]:
    """Yield user, input and label of each sample of a JSON file.

    Raises `DataError` for invalid JSON or an invalid sample; the message names the user.
    """
    try:
        json_content = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_reject_repeated_keys)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not valid JSON, or was truncated ({error}): restore the file") from error
    data_by_user, users, sample_counts = (
        json_content.get(json_key) if isinstance(json_content, dict) else None for json_key in REQUIRED_JSON_KEYS
    )
    if not isinstance(data_by_user, dict) or not isinstance(users, list):
        raise DataError(f"{file} is not a file of LEAF: it lacks users, num_samples or user_data; restore or remove it")
    n_entries_by_user = Counter(user_name if isinstance(user_name, str) else repr(user_name) for user_name in users)
    n_entries_by_user.subtract(data_by_user.keys())
    if invalid_users := [user_name for user_name, n in n_entries_by_user.items() if n or not user_name.strip()]:
        raise DataError(f"{file}: users must list each user of user_data once, by name; {invalid_users[0]!r} is wrong")
    if sample_counts is not None and (not isinstance(sample_counts, list) or len(sample_counts) != len(users)):
        raise DataError(f"{file}: num_samples must be a list of {len(users)} numbers, one for each entry of users")
    input_length = None
    for user_number, user_name in enumerate(users):
        user_data = data_by_user.get(user_name)
        user_samples = user_data if isinstance(user_data, dict) else {}
        x, y = user_samples.get("x"), user_samples.get("y")
        if not isinstance(x, list) or not isinstance(y, list):
            raise DataError(f"{file}: user {user_name!r} has no lists x and y: add them")
        if y and isinstance(y[0], dict):
            sample_counts = None
            x, y = _split_comments(f"{file}: user {user_name!r}", x, y)
        n_samples = len(y) if sample_counts is None else sample_counts[user_number]
        if not len(x) == len(y) == n_samples:
            raise DataError(
                f"{file}: user {user_name!r} has {len(x)} x and {len(y)} y, num_samples says {n_samples}: correct them"
            )
        if x and isinstance(x[0], str) and Path(x[0]).suffix in IMAGE_SUFFIXES:
            raise DataError(f"{file}: x are names of images, {x[0]!r}: fedcohort prepare celeba reads images")
        input_length = _check_user_samples(f"{file}: user {user_name!r}", x, y, input_length)
        yield from zip([user_name] * len(x), x, y, strict=True)


def _check_user_samples(user_text: str, x: Sequence[Any], y: Sequence[Any], input_length: int | None) -> int | None:
    """Check the samples of one user, and return the number of numbers in an input; None for texts and tokens.

    Args:
        user_text: file and user, the start of messages.
        x: inputs of the samples: lists of numbers, texts, or lists of tokens.
        y: labels of the samples: whole numbers, texts, or lists of tokens.
        input_length: required number of numbers in an input, from earlier users; None if they have none.

    Raises:
        DataError: a sample is invalid; the message names it.
    """
    for sample_number, (sample, label) in enumerate(zip(x, y, strict=True)):
        is_whole_number_label = type(label) is int or (isinstance(label, float) and label.is_integer())
        is_token_list_label = isinstance(label, list) and all(isinstance(token, str) for token in label)
        if not (is_whole_number_label or is_token_list_label or isinstance(label, str)):
            raise DataError(f"{user_text} has label {label!r:.40}; labels are whole numbers, texts, or lists of texts")
        if isinstance(sample, str) or (isinstance(sample, list) and set(map(type, sample)) == {str}):
            continue
        input_values = sample if isinstance(sample, list) else [sample]
        invalid_numbers = [n for n in input_values if type(n) not in (int, float) or not abs(n) <= MAX_FLOAT32]
        if invalid_numbers or not isinstance(sample, list):
            raise DataError(
                f"{user_text}, sample {sample_number}: x must hold texts, or lists of numbers that float32 can hold, "
                f"but holds {[*invalid_numbers, sample][0]!r:.40}"
            )
        input_length = len(sample) if input_length is None else input_length
        if len(sample) != input_length or not sample:
            raise DataError(
                f"{user_text}, sample {sample_number}: x has {len(sample)} numbers, but the first has {input_length}: "
                "all must have the same number, above 0"
            )
    return input_length


def _split_comments(user_text: str, comments: list[Any], target_objects: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the sequences of tokens of a user's Reddit comments, and the sequences of their targets.

    Args:
        user_text: file and user, the start of messages.
        comments: for each comment a list of sequences of tokens.
        target_objects: for each comment the JSON object whose `target_tokens` are the targets.

    Raises:
        DataError: comments and targets differ in number or length; the message names the comment.
    """
    if len(comments) != len(target_objects):
        raise DataError(
            f"{user_text} has {len(comments)} entries in x, but {len(target_objects)} in y: the numbers must be equal"
        )
    x, y = list[Any](), list[Any]()
    for comment_number, (token_sequences, target_object) in enumerate(zip(comments, target_objects, strict=True)):
        target_sequences = target_object.get("target_tokens") if isinstance(target_object, dict) else None
        if not isinstance(token_sequences, list) or not isinstance(target_sequences, list):
            raise DataError(f"{user_text}, comment {comment_number} has no lists x and y.target_tokens: add them")
        sequence_lengths = [
            [len(sequence) if isinstance(sequence, list) else -1 for sequence in sequences]
            for sequences in (token_sequences, target_sequences)
        ]
        if sequence_lengths[0] != sequence_lengths[1]:
            raise DataError(
                f"{user_text}, comment {comment_number} has words in lists of {sequence_lengths[0]} and targets in "
                f"lists of {sequence_lengths[1]}: both must have the same lengths"
            )
        x += token_sequences
        y += target_sequences
    return x, y


def write_vocabulary(out_folder: Path) -> None:
    """Write vocabulary.parquet, the counts of the training part's tokens, into the folder of tables `out_folder`.

    Nothing is written if the file exists, if there is no train.parquet, or if inputs are not lists of tokens.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    train_file, vocabulary_file = out_folder / "train.parquet", out_folder / "vocabulary.parquet"
    if os.path.lexists(vocabulary_file) or not train_file.exists():
        return
    train_table = parquet.open_file(train_file, pre_buffer=False)
    if train_table.schema_arrow.field("x").type != pa.list_(pa.string()):
        return
    token_counts: Counter[str] = Counter()
    for row_group in range(train_table.num_row_groups):
        token_counts.update(
            pc.list_flatten(train_table.read_row_group(row_group, columns=["x"]).column("x")).to_pylist()
        )
    for token in FILLER_TOKENS:
        del token_counts[token]
    ranked_tokens = sorted(token_counts.items(), key=lambda token_and_count: (-token_and_count[1], token_and_count[0]))
    vocabulary_rows = [{"word": word, "count": token_count} for word, token_count in ranked_tokens]
    schema = pa.schema({"word": pa.string(), "count": pa.int64()})
    with disk.write_file_atomically(vocabulary_file) as draft_path:
        parquet.write_table(pa.Table.from_pylist(vocabulary_rows, schema), draft_path)
