"""The tables of methods in docs/methods.md are what the docstrings say."""

from pathlib import Path

import pytest

from config_options import CONFIGS, ROOT
from fedcohort.command.methods import main, make_table_rows
from fedcohort.errors import OptionError
from fedcohort.signal.base import list_signals


@pytest.mark.parametrize(
    ("group", "head"),
    [
        ("selector", "| option | method | reads | secure aggregation |\n|---|---|---|---|\n"),
        ("agg", "| option | method | reads |\n|---|---|---|\n"),
    ],
)
def test_the_page_agrees_with_the_docstrings(group: str, head: str) -> None:
    """A method that the table lacks is listed all the same, because a new method is three files."""
    rows = make_table_rows(group, CONFIGS)
    page = (ROOT / "docs" / "methods.md").read_text()
    lines = page.split(head)[1].splitlines()
    table = [line for line in lines[: lines.index("")] if line]
    assert len(table) > 4
    for line in table:
        assert line == rows[line.split("`")[1]]


@pytest.mark.parametrize("alias", ["", "mine"])
def test_a_component_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alias: str
) -> None:
    """A user's selector with a syntax error, directly or behind an alias."""
    (tmp_path / "mine_with_fault.py").write_text("class Mine(:\n")
    (tmp_path / "selector").mkdir()
    (tmp_path / "selector" / "mine.yaml").write_text("_target_: mine_with_fault.Mine\n")
    if alias:
        (tmp_path / "selector" / "a_mine.yaml").write_text(f"# Mine.\ndefaults: [{alias}]\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OptionError, match=r"mine: _target_ 'mine_with_fault.Mine' can't be used: .*SyntaxError"):
        make_table_rows("selector", tmp_path)


def test_an_alias_shows_its_comment_and_its_signals() -> None:
    """Nothing else reads the server's loss but a FLASH that is paid with it; the other repairs read what FLASH does."""
    agg, selector = make_table_rows("agg", CONFIGS), make_table_rows("selector", CONFIGS)
    assert agg["fedavgm"].startswith("| `fedavgm` | FedAvg with server momentum")
    assert agg["fedavgm"].endswith("| as `fedavg` |")
    assert agg["ccr"].endswith("| as `rhfl` |")
    assert selector["flash_literal"].endswith("| as `flash` | yes |")
    assert selector["flash_progress"].endswith("| `duration`, `robust_loss`, `server_val_loss`, `val_loss` | yes |")
    assert not [line for line in (*agg.values(), *selector.values()) if line.endswith(("| |", "| | yes |"))]
    assert "nothing" in make_table_rows("selector", CONFIGS)["round_robin"]


def test_a_component_is_found_wherever_its_yaml_defines_it() -> None:
    assert make_table_rows("agg", CONFIGS)["rhfl"].endswith("| `sce_loss` |")
    assert make_table_rows("partition", CONFIGS)["own"].endswith("| |"), "whose part is chosen by its data"
    assert make_table_rows("objective", CONFIGS)["propfair"].startswith(
        "| `propfair` | PropFair: "
    )  # made of another objective


@pytest.mark.parametrize(
    "names", [("signal", "signals"), ("agg", "aggregator", "aggregators"), ("selector", "selectors"), ("samples",)]
)
def test_singular_plural_and_kind_of_new_name_the_same_group(
    names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    tables = set()
    for name in names:
        assert main([name]) == 0
        tables.add(capsys.readouterr().out)
    assert len(tables) == 1
    assert len(tables.pop().splitlines()) > 4


def test_a_name_that_is_no_group_is_rejected_as_typed() -> None:
    with pytest.raises(OptionError, match=r"a group must be one of agg, .*, signal, .*, got 'selectorss'"):
        main(["signals", "selectorss"])


def test_each_signal_has_kind_cost_and_privacy_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["signals"]) == 0
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head == "| signal | kind | cost a client | reveals |"
    assert len(lines) == len(list_signals())
    table = {line.split("`")[1]: [cell.strip() for cell in line.split("|")[2:-1]] for line in lines}
    assert table["n_train"] == ["sent once, at registration", "4 B", "how many training samples a client has"]
    assert table["loss"][:2] == ["queried in a round", "4 B, 1 forward pass"]
    assert table["lr"][:2] == ["read off the update", "none"]
    assert table["greedy_gain"][0] == "queried in a round"
    assert [line for line in lines if line.startswith("| `noise_rate` (oracle) | known to the server | none |")]
