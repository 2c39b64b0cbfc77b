"""Convert a run folder to the format of an older version: without available clients, `queried` and digests."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedcohort.record import client_files, history, manifest, metadata
from fedcohort.round.client_facts import CLIENT_FLAGS


def convert_to_old_format(folder: Path) -> None:
    """Convert a run folder: rows of all clients in every step, no `present` in the journal, arrays in `info.json`."""
    run_history, info = history.read_history(folder), metadata.load_info(folder)
    all_clients = np.arange(len(info.n_train))
    tables = []
    for step, rows in run_history.clients().drop(columns="queried").groupby("step"):
        all_rows = rows.set_index("client").reindex(all_clients).rename_axis("client").reset_index()
        all_rows["step"] = step
        flags = [flag for flag in CLIENT_FLAGS if flag != "queried"]
        all_rows[flags] = all_rows[flags].astype("boolean").fillna(False).astype(bool)
        available = run_history.available(int(str(step)))
        all_rows["available"] = available if available is not None else all_rows["available"]
        tables.append(all_rows[rows.columns])
    table = pa.Table.from_pandas(pd.concat(tables), preserve_index=False)
    kinds = {"step": pa.int32(), "client": pa.int32()}
    schema = pa.schema([pa.field(field.name, kinds.get(field.name, field.type)) for field in table.schema])
    notes = {client_files.STEPS_METADATA_KEY: json.dumps(sorted({int(step) for step in run_history.clients()["step"]}))}
    pq.write_table(table.cast(schema).replace_schema_metadata(notes), folder / client_files.CLIENT_TABLE_FILE)
    journal = folder / history.JOURNAL_FILE
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    older = [{k: v for k, v in line.items() if k not in ("present", "table", "digest")} for line in lines]
    journal.write_text("".join(json.dumps(line) + "\n" for line in older))
    content = json.loads((folder / metadata.INFO_FILE).read_text())
    for name, value in content["info"].items():
        if isinstance(value, dict) and value.keys() == {"dtype"}:
            value["array"] = getattr(info, name).tolist()
    del content["digest"]
    manifest.remove_manifest(folder)
    (folder / metadata.INFO_FILE).write_text(json.dumps(content) + "\n")
    (folder / metadata.ARRAYS_FILE).unlink()
