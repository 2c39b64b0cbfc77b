"""A scenario's page: what a federation is, so that others can see that theirs is the same. README.md, partition.png."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fedcohort.data import skew
from fedcohort.data.federation import Federation
from fedcohort.data.shards import Counts
from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import partition

PAGE, PICTURE = "README.md", "partition.png"

NAMES = {"ci": "class imbalance", "ai": "attribute imbalance", "sc": "spurious correlation"}
ELSEWHERE = ("dataset.path", "paths.logs")  # options whose values are of one machine
ROWS = 200  # clients that a page lists
MOST = 12  # pairs of class and attribute that a row of the clients' table has


def name_of(typed: Sequence[str]) -> str:
    """What the scenario is called: the words, as anybody can type them."""
    options = [word.split("=")[0] for word in typed]
    return " ".join(f"{o}=FOLDER" if o in ELSEWHERE else word for o, word in zip(options, typed, strict=True))


def write(
    folder: Path,
    federation: Federation,
    info: RunInfo,
    facts: Iterable[tuple[str, str]],
    clients: Iterable[Sequence[str]],
    configs: Path,
) -> None:
    """Write the page into `folder`, which is made.

    Args:
        folder: where to.
        federation: what it is of.
        info: what a run would tell of itself; its name is `name_of` what was typed.
        facts: label and value, of those above the clients.
        clients: rows, as the command shows them.
        configs: the folder of the groups, whose presets say what they are.
    """
    disk.check_outputs(folder, (PAGE, PICTURE), PAGE, "```bash\nfedcohort data ")
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(_lines(federation, info, facts, clients, configs)) + "\n"
    write_atomically(folder / PAGE, text)  # first, as it shows whose the picture is
    partition.draw(info, folder / PICTURE)


def _lines(
    federation: Federation,
    info: RunInfo,
    facts: Iterable[tuple[str, str]],
    clients: Iterable[Sequence[str]],
    configs: Path,
) -> Iterator[str]:
    first, *rest = info.name.split()
    yield f"# {' '.join(word for word in (first, *rest) if word.split('=')[0] not in ELSEWHERE)}"
    yield ""
    if said := about(configs / "heterogeneity" / f"{info.choices.get('heterogeneity')}.yaml"):
        yield from (said, "")
    yield from ("```bash", f"fedcohort data {first.removeprefix('dataset=')} {' '.join(rest)}".rstrip(), "```", "")
    yield from _table(("", ""), [("client map", f"`{federation.client_map}`"), *facts])
    yield ""
    yield from _table(("metric", "of all data together", "mean over clients"), metrics(info.skew))
    yield from ("", "![who holds what](partition.png)", "")
    heads = ("client", "samples", "training", f"of {federation.n_classes} classes", "most of")
    yield from (
        _table(heads, clients) if federation.group_counts is None else _groups(federation.group_counts, federation)
    )
    if (more := federation.n_clients - ROWS) > 0:
        yield from ("", f"... and {more:,} more")


def about(preset: Path) -> str:
    """What a preset's yaml says of itself, in one line; "" where there is none."""
    if not preset.is_file():
        return ""
    lines = [line for line in preset.read_text().splitlines() if line.startswith("#") and "@package" not in line]
    return " ".join(line.lstrip("# ") for line in lines)


def metrics(values: Mapping[str, float]) -> Iterator[tuple[str, str, str]]:
    """Name, of all data, mean over clients, of those of FedDiverse's metrics that the data have."""
    for name, words in NAMES.items():
        if f"global_{name}" in values:
            yield words, f"{values[f'global_{name}']:.4f}", f"{values[f'client_{name}']:.4f}"


def _groups(group_counts: Counts, federation: Federation) -> Iterator[str]:
    """The clients' training samples by class and attribute, as they see them, with each one's own three metrics."""
    counts = group_counts.reshape(federation.n_clients, federation.n_classes, -1)
    pairs = [(y, a) for y in range(counts.shape[1]) for a in range(counts.shape[2])][:MOST]
    own = skew.triplets(counts)
    rows = [
        (str(k), *(str(counts[k, y, a]) for y, a in pairs), *(f"{value:.3f}" for value in own[k]))
        for k in range(min(ROWS, len(counts)))
    ]
    yield "Training samples of each client, by class and attribute:"
    yield ""
    yield from _table(("client", *(f"{y}, {a}" for y, a in pairs), "CI", "AI", "SC"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
