"""The numbers on the pages of the papers that follow from the results of studies."""

from pathlib import Path

import pytest

from whole import claims, paper_records, paper_tables

INDEX = claims.ROOT / "docs" / "paper_results.md"
PAGES = {path.stem: path for path in sorted((claims.ROOT / "docs" / "papers").glob("*.md"))}


def flatten(path: Path) -> str:
    return " ".join(path.read_text().split())


def test_each_page_starts_with_the_verdict_of_its_studies() -> None:
    verdicts = paper_tables.describe_verdicts()
    assert list(PAGES) == sorted(verdicts)
    for name, path in PAGES.items():
        heading, first = path.read_text().split("\n\n")[:2]
        assert heading.startswith("# ")
        assert " ".join(first.split()) == f"**{verdicts[name]}**"


def test_each_row_of_a_study_is_that_of_its_results() -> None:
    lines_by_page = {page: path.read_text().splitlines() for page, path in PAGES.items()}
    assert [(page, row) for page, row in paper_tables.list_rows() if row not in lines_by_page[page]] == []


def test_the_sentences_have_the_numbers_of_the_studies() -> None:
    text_by_page = {page: flatten(path) for page, path in PAGES.items()}
    assert [(page, text) for page, text in paper_tables.list_sentences() if text not in text_by_page[page]] == []


def test_the_index_has_the_numbers_of_the_studies() -> None:
    assert f"| {paper_records.format_fig7_index()} |" in INDEX.read_text()
    headroom = claims.find_best_oracle("paper_regret", "both")[1].removeprefix("+")
    gains = [paper_tables.difference("spurious_cmnist", "mostly", name).split()[0] for name in ("feddiverse", "hcsfed")]
    fedmaba = [
        paper_tables.difference("paper_fedmaba", cell, "fedmaba", "fedavg").split()[0]
        for cell in ("shards_full", "shards")
    ]
    best = paper_tables.read_table("paper_flash", "numbers").query("role == 'method'")["diff"].max()
    for text in (
        f"| {fedmaba[0]} points with all clients, {fedmaba[1]} with 10 of 100 | only with full",
        f"| no selector is above random by more than {100 * best:.1f} points |",
        f"greedy oracle is {headroom} points above random, and no method is significantly better than random "
        f"(Holm over {paper_tables.count_tests('paper_regret')} methods;",
        f"{gains[0]} points over random in rounds 21 to 25, HCSFed {gains[1]} |",
    ):
        assert text in flatten(INDEX)


def test_jains_index_has_the_order_that_the_index_states() -> None:
    for cell in ("two", "three"):
        runs_by_method = claims.read_runs("paper_ucb_cs_fairness", cell)
        values = {method: claims.average(by_seed.values()) for method, by_seed in runs_by_method.items()}
        assert values["powd"] > values["ucb_cs"] > max(values["rpowd"], values["random"])


@pytest.mark.parametrize(
    ("study", "n_methods"), [("paper_ucb_cs_fairness", 9), ("paper_ucb_cs", 8), ("paper_regret", 19)]
)
def test_no_selector_is_better_in_a_setting(study: str, n_methods: int) -> None:
    methods = paper_tables.read_table(study, "numbers").query("role == 'method'")
    assert len(methods) == n_methods
    assert (methods["sign"] <= 0).all()
