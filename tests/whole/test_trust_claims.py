"""The counts in docs/trust.md add up, and its numbers and README's on speed are those of benchmarks and studies."""

import re

from whole import claims

TRUST, README, FAULTS, GPU, GROWTH = (
    (claims.ROOT / name).read_text()
    for name in (
        "docs/trust.md",
        "README.md",
        "benchmarks/planted_faults.md",
        "benchmarks/gpu.md",
        "benchmarks/growth.md",
    )
)


def read_rows(section: str, n_cells: int) -> list[list[str]]:
    """Return the cells of the table rows below a heading of docs/trust.md, without the table's header."""
    lines = TRUST.partition(f"{section}\n")[2].partition("\n#")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert all(len(row) == n_cells for row in rows)
    return rows[1:]


def test_the_counts_of_planted_faults_add_up_and_are_those_of_the_samples() -> None:
    rows = read_rows("## Planted faults (mutation tests)", 7)
    totals = [0, 0, 0, 0]
    for package, seed, *counts, percent in rows:
        planted, noticed, equivalent, survived = map(int, counts)
        assert planted == noticed + equivalent + survived, package
        assert percent == f"{100 * noticed / (planted - equivalent):.1f}", package
        assert re.search(rf"seed {seed}\b[^|]* \| {planted} \| {noticed} \(", FAULTS), package
        totals = [total + int(count) for total, count in zip(totals, counts, strict=True)]
    planted, noticed, equivalent, survived = totals
    text = (
        f"Of all {planted} faults {noticed} were noticed, {equivalent} are equivalent and {survived} survived: "
        f"{100 * noticed / (planted - equivalent):.1f} % of those that change a result were noticed."
    )
    assert text in " ".join(TRUST.split())


def test_each_case_of_bad_input_is_rejected_accepted_or_failed() -> None:
    rows = read_rows("### Bad input", 6)
    assert len(rows) == 10
    assert [kind for kind, cases, *results, _ in rows if int(cases) != sum(map(int, results))] == []


def test_the_speed_on_a_gpu_is_that_of_the_benchmark() -> None:
    ratios = [
        r
        for row in re.findall(r"`engine=auto` \(vectorised\) .* \| ([\d., ]+) \|$", GPU, re.MULTILINE)
        for r in row.split(", ")
    ]
    for row in re.findall(r"^\| W\d \| fedcohort, float32 \| (.*) \|$", GPU, re.MULTILINE):
        ratios += [cell for cell in row.split(" | ")[1:4:2] if cell != "-"]
    assert len(ratios) == 8
    text = f"takes {min(ratios)} to {max(ratios)} of a bare"
    assert text in TRUST
    assert text in " ".join(README.split())
    runs = claims.read_results("auto_networks")
    text = f"{len(runs)} runs of a study with convolutional networks on H100 GPUs, 15 or 16 at a time: 240 rounds"
    assert f"{text} or a little more in {runs['wall_s'].min():.0f} to {runs['wall_s'].max():.0f} s each" in TRUST
    assert f"{len(claims.read_results('paper_fedbalancer_network'))} runs of FedBalancer's Table 1 on an H100" in TRUST


def test_the_round_time_of_a_million_clients_is_that_of_the_benchmark() -> None:
    row = re.findall(r"^\| 1,000,000 \| [\d.]+ \| [\d.]+ \| (\d+) \|", GROWTH, re.MULTILINE)
    assert f"It takes {row[0]} ms if 100 of a million clients train" in " ".join(README.split())
