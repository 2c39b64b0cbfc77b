"""The words of prepared texts by how often they are used: vocabulary.parquet, beside the tables.

Columns `word` and `count`, of the inputs `x` of the training part, the most frequent first and equals in the order of
their code points; what pads a sequence is no word, and neither is <UNK>, which stands for all that have no symbol. Who
reads it takes as many of the first as it wants.
"""

import os
from collections import Counter
from pathlib import Path

from fedcohort.host import disk, parquet

NO_WORDS = ("<PAD>", "<UNK>")
TRAIN, NAME = "train.parquet", "vocabulary.parquet"


def finish(destination: Path) -> None:
    """Write the vocabulary of a prepared folder whose inputs are lists of words, unless there is one."""
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
    for name in NO_WORDS:
        del counts[name]
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    words, uses = zip(*ranked, strict=True) if ranked else ((), ())
    with disk.replacing(destination / NAME) as draft:
        parquet.write(pa.table({"word": pa.array(words, pa.string()), "count": pa.array(uses, pa.int64())}), draft)
