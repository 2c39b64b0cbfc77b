"""The per-client facts of a run: one Parquet file a step while it runs, one file for all steps when it has finished.

Ordered by step and client; step 0 is the untrained model, with nobody available, selected or arrived. A client has a
row in the steps in which it was queried, selected or measured, or told something; of those whom the selector did no
more than rank, the 1000 best have one. Nothing happened to the others: their flags are False, all else is null, and
whether they were available is in the journal (`History.available`). Null where a fact is unknown: a client that was not
asked, or a step that did not measure it.

    step, client             int32; completed rounds; the client's id
    available                bool; was ready at the start of the round
    queried                  bool; selector or aggregator queried it in this round, whether or not it answered: a client
                             that left before it answered is charged for the query, and has no signal_*
    selected, arrived        bool; was chosen to train; its update came in time and is finite
    score, part_*            what the selector ranked it by, in its own units, and what that is made of
    probability              of being drawn, where the selector draws
    reward                   what its last answer was worth to a selector that learns from rewards, in its own units
    units                    local epochs done (steps, where client.steps is set), of the selected; 0 when too late
    units_asked              of the selected
    finish_s                 virtual seconds from the broadcast to the answer, for the units done, of the selected; null
                             when too late
    down_s, infer_s          virtual seconds, with those away, of its download and of the forward passes asked of it,
    train_s, up_s            of its training (the units done; where it is late, those asked) and of its upload
    weight                   what the update weighed in the aggregate, of those that arrived; they add up to 1 where
                             that is a mean, unlike in FedNova, FedMGDA+, q-FFL and TERM, and under unbiased selection
    train_loss               nats; mean cross-entropy of its mini-batches, each before its step, as the client tells it
                             (under attack=loss_inflation a lie), of those that arrived
    signal_*                 what a client answered or sent of `fedcohort/signal/`; answers to probes are about the
                             model before the round, and null too where a client answered NaN; a row of up to 64
                             numbers is signal_*.0, signal_*.1, ...; step 0 has what was told once, at registration;
                             of signal_update_gram the i-th is with the i-th of those that arrived, by id
    loss                     nats; cross-entropy of the round's new global model on all of T_i
    test_acc                 in [0, 1]; accuracy of the round's new global model on E_i, null where E_i is empty

Numbers are float64. `loss` and `test_acc` are measured every `eval.clients_every` rounds. Only steps whose line is in
the journal count. The line has the digest of the step's own file; the manifest of an ended run has that of
`clients.parquet`.
"""

import io
import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.host import parquet
from fedcohort.record import client_files, digest
from fedcohort.round.client_facts import FLAGS, ClientFacts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ROWS = 65_536  # a row group: steps of a small population share one
FAMILIES = ("part_", "signal_")
ORDER = (
    *("step", "client", *FLAGS, "score", "part_", "probability", "reward"),
    *(
        "units",
        "units_asked",
        "finish_s",
        "down_s",
        "infer_s",
        "train_s",
        "up_s",
        "weight",
        "train_loss",
        "signal_",
        "loss",
        "test_acc",
    ),
)


def write_part(folder: Path, step: int, columns: Mapping[str, np.ndarray]) -> str:
    """Write `clients/000012.parquet` and return its digest.

    Its rename reaches the disk with the journal's line, which is synced after it.

    columns: the facts of a round, or whole columns, each [n_clients].
    """
    import pyarrow as pa

    facts = columns if isinstance(columns, ClientFacts) else ClientFacts.from_columns(columns)
    clients = facts.concerned
    rows = facts.rows(clients)
    ids = {"step": np.full(len(clients), step, dtype=np.int32), "client": clients.astype(np.int32)}
    flags = {name: rows.get(name, np.zeros(len(clients), dtype=bool)) for name in FLAGS}
    numbers = {
        name: pa.array(values, pa.float64(), from_pandas=True)  # NaN is null: one word for the unknown
        for name, values in rows.items()
        if name not in FLAGS
    }
    table = pa.table({**ids, **flags, **numbers})
    packed = io.BytesIO()
    parquet.write(table, packed)
    (folder / client_files.PARTS).mkdir(exist_ok=True)
    client_files.replace(client_files.part_of(folder, step), lambda draft: draft.write_bytes(packed.getbuffer()))
    return digest.of(packed.getbuffer())


def load(
    folder: Path,
    steps: Collection[int],
    columns: Sequence[str] | None = None,
    digests: Mapping[int, str] = MappingProxyType({}),
) -> "pd.DataFrame":
    """Return the rows of `steps`, ordered by step and client; NaN where a fact is unknown.

    digests: of the steps' own files, as far as the journal has them. Raises `DamagedFile`.
    """
    import pandas as pd
    import pyarrow as pa

    wanted = None if columns is None else ["step", "client", *columns]
    tables = [_pick(path, steps, wanted, digests) for path in client_files.sources(folder, steps, digests)]
    if not tables:
        return pd.DataFrame(columns=wanted or ["step", "client"])
    whole = pa.concat_tables(tables, promote_options="permissive")
    frame: pd.DataFrame = whole.select(sorted(whole.column_names, key=_place)).to_pandas()
    return frame.sort_values(["step", "client"], kind="stable", ignore_index=True)


def consolidate(folder: Path, steps: Collection[int], digests: Mapping[int, str] = MappingProxyType({})) -> None:
    """Put all `steps` into `clients.parquet` and remove `clients/`. A kill in the middle leaves both and loses none.

    digests: as `load` has them. Raises `DamagedFile`, and leaves everything as it was.
    """
    import pyarrow as pa

    sources = client_files.sources(folder, steps, digests)
    if not sources or sources == [folder / client_files.WHOLE]:
        shutil.rmtree(folder / client_files.PARTS, ignore_errors=True)
        return
    present = sorted(step for path in sources for step in client_files.steps_of(path))
    schemas = [
        client_files.open_checked(path, digests.get(client_files.step_of(path))).schema_arrow for path in sources
    ]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    fields = sorted(schema, key=lambda field: _place(field.name))
    schema = pa.schema(fields, metadata={client_files.STEPS: json.dumps(present)})

    def write(draft: Path) -> None:
        with parquet.writer(draft, schema) as writer:
            for group in _groups(sources):
                writer.write_table(_fit_schema(group, schema))

    client_files.replace(folder / client_files.WHOLE, write)
    shutil.rmtree(folder / client_files.PARTS, ignore_errors=True)


def _place(name: str) -> tuple[int, str]:
    """Return where a column stands, whatever the first step measured.

    Facts of the round come first, then those of the model after it.
    """
    known = next((prefix for prefix in FAMILIES if name.startswith(prefix)), name)
    return (ORDER.index(known) if known in ORDER else len(ORDER)), name


def _pick(path: Path, steps: Collection[int], columns: Sequence[str] | None, digests: Mapping[int, str]) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc

    file = client_files.open_checked(path, digests.get(client_files.step_of(path)))
    names = file.schema_arrow.names
    with client_files.naming(path):
        table = file.read(columns=None if columns is None else [name for name in columns if name in names])
        return table.filter(pc.is_in(table["step"], pa.array(sorted(steps), pa.int32())))


def _groups(sources: Sequence[Path]) -> "Iterator[pa.Table]":
    """Yield tables of about `ROWS` rows: memory stays flat in the number of rounds."""
    import pyarrow as pa

    waiting: list[Any] = []
    for path in sources:
        file = parquet.open_file(path)
        for group in range(file.num_row_groups):
            with client_files.naming(path):
                waiting.append(file.read_row_group(group))
            if sum(table.num_rows for table in waiting) >= ROWS:
                yield pa.concat_tables(waiting, promote_options="permissive")
                waiting = []
    if waiting:
        yield pa.concat_tables(waiting, promote_options="permissive")


def _fit_schema(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
