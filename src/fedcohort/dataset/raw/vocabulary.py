"""Count the tokens of prepared texts: vocabulary.parquet, in the folder of the tables.

It counts the inputs `x` of the training part. Its columns are `word` and `count`, in the order of falling counts; equal
counts are in the order of code points. <PAD>, which fills sequences up, and <UNK>, which replaces rare tokens, are not
counted. A dataset uses the first rows, as many as its option `vocabulary` allows.
"""

import os
from collections import Counter
from pathlib import Path

from fedcohort.host import disk, parquet

NOT_COUNTED = ("<PAD>", "<UNK>")
TRAIN, NAME = "train.parquet", "vocabulary.parquet"


def finish(destination: Path) -> None:
    """Write the vocabulary of a prepared folder whose inputs are lists of tokens, unless it exists."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if os.path.lexists(destination / NAME) or not (destination / TRAIN).exists():
        return
    table = parquet.open_file(destination / TRAIN, pre_buffer=False)
    if table.schema_arrow.field("x").type != pa.list_(pa.string()):
        return
    counts: Counter[str] = Counter()
    for group in range(table.num_row_groups):
        column = table.read_row_group(group, columns=["x"]).column("x")
        for entry in pc.value_counts(pc.list_flatten(column)).to_pylist():
            counts[entry["values"]] += entry["counts"]
    for name in NOT_COUNTED:
        del counts[name]
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    words, uses = zip(*ranked, strict=True) if ranked else ((), ())
    with disk.replace_atomically(destination / NAME) as draft:
        parquet.write_table(
            pa.table({"word": pa.array(words, pa.string()), "count": pa.array(uses, pa.int64())}), draft
        )
