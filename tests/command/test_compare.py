"""`fedcohort compare`: from runs in a database to files, and mistakes in one line."""
# ruff: noqa: F811

import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow.entities import Metric, Param, RunTag

from comparison_harness import ACC
from config_options import CONFIGS
from fedcohort.api.comparison import Options
from fedcohort.command.compare import compare_runs, main, parse_options
from fedcohort.errors import FedcohortError, OptionError, TrackingError
from fedcohort.startup.command_line import run_with_one_line_errors
from fedcohort.startup.comparison import compare_tracked_runs
from fedcohort.tracking import runs
from tracking.databases import Logs, logs  # noqa: F401


def fill(logs: Logs) -> None:
    """The logs of two selectors, two seeds and three rounds, and of one run of another sweep."""
    client = logs.client()
    experiment = client.create_experiment("fedcohort", artifact_location=(logs.path / "mlartifacts").as_uri())
    for i, (selector, seed, sweep) in enumerate(
        [("a", 0, "s"), ("a", 1, "s"), ("b", 0, "s"), ("b", 1, "s"), ("b", 2, "t")]
    ):
        run_id = client.create_run(experiment, start_time=i).info.run_id
        params = [Param("selector", selector), Param("seed", str(seed)), Param("dataset", "digits")]
        cost = {"time/virtual_s": 7.0, "comm/down_bytes": 1e6, "comm/up_bytes": 2e6}
        metrics = [Metric(name, value * step, 0, step) for name, value in cost.items() for step in range(4)]
        metrics += [Metric("clients/acc_worst5", 0.05 * step + 0.01 * seed, 0, step) for step in range(4)]
        metrics += [
            Metric(ACC, 0.1 * step + 0.01 * seed + 0.05 * (selector == "b") * step, 0, step) for step in range(4)
        ]
        client.log_batch(run_id, metrics, params, [RunTag("status", "finished"), RunTag("sweep_id", sweep)])


def fill_seeds(logs: Logs, runs: Sequence[tuple[float, dict[str, str], dict[str, str]]]) -> None:
    """Finished runs of selector a, a seed each; runs: accuracy, parameters and tags."""
    client = logs.client()
    experiment = client.create_experiment("fedcohort")
    for seed, (accuracy, params, tags) in enumerate(runs):
        run_id = client.create_run(experiment, start_time=seed + 1, run_name=f"a-s{seed}").info.run_id
        run_params = [Param(*item) for item in {"selector": "a", "seed": str(seed), **params}.items()]
        run_tags = [RunTag(*item) for item in {**tags, "status": "finished"}.items()]
        client.log_batch(run_id, [Metric(ACC, accuracy, 0, 3)], run_params, run_tags)


def fill_lengths(logs: Logs) -> None:
    """Four runs that were started with three rounds: two were extended to twenty."""
    tags: list[dict[str, str]] = [{"rounds": "20"}, {"rounds": "20"}, {"rounds": "3"}, {}]
    fill_seeds(logs, [(0.1 * seed, {"rounds": "3"}, run_tags) for seed, run_tags in enumerate(tags)])


def make_options(logs: Logs, **changes: str) -> Options:
    return replace(Options(tracking_uri=logs.uri, out=str(logs.path / "out")), **changes)


def test_a_sweep_becomes_tables_and_figures(logs: Logs) -> None:
    """The mean of rounds 1 to 3 differs by .05 * 2: the same on both seeds. The page is named first."""
    fill(logs)
    text, files = compare_runs(make_options(logs, sweep="s", baseline="a"))
    assert "b has 2 seeds in common with a (+10.0 points): a verdict needs 3." in text
    assert [file.name for file in files[:4]] == ["report.html", "table.md", "table.tex", "table.csv"]
    assert {"curves.svg", "differences.pdf", "forest.png"} <= {file.name for file in files}
    text, files = compare_runs(make_options(logs, filter="params.dataset = 'digits'", curves="false"))
    assert "missing: a has no run of seed 2" in text
    assert "curves.png" not in [file.name for file in files]


def test_the_option_last_means_the_latest_sweep(logs: Logs) -> None:
    """Of the sweeps one and two the runs of two are the newest, and the page names it."""
    fill_seeds(logs, [(0.1, {}, {"sweep_id": "one"}), (0.3, {}, {"sweep_id": "two"}), (0.5, {}, {"sweep_id": "two"})])
    text, _ = compare_runs(make_options(logs, sweep="last", curves="false"))
    assert "2 runs of sweep two; " in text


def test_a_deleted_experiment_is_named(logs: Logs) -> None:
    fill_lengths(logs)
    logs.client().delete_experiment("1")
    for sweep in ("last", "one"):
        with pytest.raises(TrackingError, match=r"the experiment 'fedcohort' is deleted .* experiments restore -x 1"):
            compare_runs(make_options(logs, sweep=sweep))


def test_without_sweeps_the_option_last_is_an_error(logs: Logs) -> None:
    fill_lengths(logs)
    with pytest.raises(OptionError, match="sweep must be null: experiment 'fedcohort' has no sweep, got 'last'"):
        compare_runs(make_options(logs, sweep="last"))


def test_several_metrics_and_costs_are_compared(logs: Logs) -> None:
    """b costs what a does, and its worst clients are as good: 10 % of rounds 1 to 3, and 11 % on seed 1."""
    fill(logs)
    text, files = compare_runs(
        make_options(logs, sweep="s", baseline="a", metric=f"{ACC},clients/acc_worst5", curves="false")
    )
    header, _, row = (line for line in text.splitlines() if line.startswith("|") and not line.startswith("| a"))
    assert "| clients/acc_worst5, % | clients/acc_worst5: better than a, points | virtual time | bytes |" in header
    assert "| 10.5 [4.1, 16.9] | +0.0 | 21 s (1.00 ×) | 9 MB (1.00 ×) |" in row
    text_by_file = {file.name: file.read_text() for file in files if file.suffix in (".csv", ".tex")}
    assert text_by_file["table.csv"].count(f",{ACC},") == text_by_file["table.csv"].count(",clients/acc_worst5,") == 2
    assert r"9 MB (1.00 $\times$)" in text_by_file["table.tex"]
    with pytest.raises(
        OptionError, match=r"metric must be one of clients/acc_worst5, comm/down_bytes, .* got 'test/ac'"
    ):
        compare_runs(make_options(logs, sweep="s", metric=f"{ACC},test/ac"))


def test_the_run_of_a_report_is_not_compared(logs: Logs) -> None:
    fill(logs)
    text, _ = compare_runs(make_options(logs, sweep="s", baseline="a", report="true", curves="false"))
    client = logs.client()
    (run,) = client.search_runs(["1"], "tags.report = 's'")
    assert text.endswith(f"\nMLflow: report: test/acc by selector, against a ({run.info.run_id[:8]})\n")
    assert "b has 2 seeds in common with a" in run.data.tags["mlflow.note.content"]
    assert compare_runs(make_options(logs, curves="false"))[0].count("left out") == 0
    client.set_tag(run.info.run_id, "sweep_id", "s")
    options = make_options(logs, sweep="s")
    assert len(compare_tracked_runs(options.query, options.question).matching.cells["", "b"]) == 2


def test_the_later_of_two_values_of_a_round_counts(logs: Logs) -> None:
    fill(logs)
    options = make_options(logs, sweep="s")
    before = compare_tracked_runs(options.query, options.question)
    run, client = before.matching.runs[0].id, logs.client()
    client.log_metric(run, "test/acc", 0.75, timestamp=2**42, step=1)
    client.log_metric(run, "test/acc", 0.25, timestamp=1, step=1)
    curves = compare_tracked_runs(options.query, options.question).frames.curves
    assert curves.set_index(["run", "round"]).loc[(run, 1), "test/acc"] == 0.75


def test_a_target_adds_tables(logs: Logs) -> None:
    """b has .15 a round, a .1, a round takes 7 s: .3 is met after 14 and 21 s, and seeds differ by a hundredth."""
    fill(logs)
    options = make_options(logs, sweep="s", baseline="a", curves="false")
    text, files = compare_runs(replace(options, target="0.3", crossing="first"))
    assert "## Cost until test/acc is 30 %" in text
    assert "| a | 2 of 2 seeds | 21 s |" in text
    assert "| b | 2 of 2 seeds | 14 s | 1.50 |" in text
    assert {"target.md", "target.tex", "target.csv"} <= {file.name for file in files}
    text, files = compare_runs(replace(options, target="best_of:a", axis="bytes"))
    assert "## Cost until test/acc is 20 to 21 %" in text
    with pytest.raises(OptionError, match="axis=client_flops has no value for run"):
        compare_runs(make_options(logs, sweep="s", target="0.3", axis="client_flops"))


def test_an_extended_budget_replaces_the_first_one(logs: Logs) -> None:
    """The first run was ended by a budget; a run of an older version, which had no budget, is not mentioned."""
    end_tags = {"until.acc": "0.4", "rounds_done": "2", "ended_by": "until.acc"}
    fill_seeds(logs, [(0.1, {"rounds": "3", "until.acc": "0.2"}, end_tags), (0.1, {"rounds": "3"}, {})])
    text, _ = compare_runs(make_options(logs, rows="until.acc", curves="false"))
    assert "| 0.4 | 1 | 10.0 |\n| null | 1 | 10.0 |" in text
    assert "- ended by until.acc=0.4: 1 run, after 2 rounds" in text


def test_runs_that_were_extended_differ_in_rounds(logs: Logs) -> None:
    fill_lengths(logs)
    text, _ = compare_runs(make_options(logs, curves="false"))
    assert "| a | 2 | 25.0 [" in text
    omitted, how = next(line for line in text.splitlines() if "left out" in line).split("): it differs")
    assert [name in omitted for name in ("a-s0", "a-s1", "a-s2", "a-s3")] == [True, True, False, False]
    assert how == " from the other runs of a: rounds=20 (others 3)"


def test_runs_can_be_compared_by_rounds(logs: Logs) -> None:
    fill_lengths(logs)
    text, _ = compare_runs(make_options(logs, rows="rounds", curves="false"))
    assert "| 3 | 2 | 25.0 [" in text
    assert "| 20 | 2 | 5.0 [" in text
    text, _ = compare_runs(make_options(logs, rows="selector", cols="rounds", curves="false"))
    assert "| rounds | selector | seeds |" in text


def test_missing_runs_are_reported(logs: Logs) -> None:
    fill(logs)
    with pytest.raises(TrackingError, match=r"no runs in experiment 'fedcohort' with tags\.sweep_id LIKE '%s%' and"):
        compare_runs(make_options(logs, sweep="s", filter="params.seed = '7'"))
    with pytest.raises(OptionError, match=r"sweep must be one of s, t, got 'lst'; did you mean last\?"):
        compare_runs(make_options(logs, sweep="lst"))
    with pytest.raises(OptionError, match="experiment must be one of Default, fedcohort, got 'x'"):
        compare_runs(make_options(logs, experiment="x"))
    with pytest.raises(OptionError, match=r"filter: MLflow can't read 'what\?'"):
        compare_runs(make_options(logs, filter="what?"))
    assert not (logs.path / "out").exists()


def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    database = tmp_path / "none.db"
    with pytest.raises(OptionError, match="tracking_uri must be an existing database"):
        runs.connect(runs.RunQuery(f"sqlite:///{database}", "fedcohort"))
    assert not database.exists()


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("rows", "can't read 'rows': type name=value"),
        ("row=agg", "there is no option 'row'"),
        ("rows=null", "rows must be a text"),
        ("cols=selector", "cols must be another parameter than rows=selector"),
        ("better=up", "better must be one of auto, high, low"),
        ("metric=test/acc,", "metric must be a metric, or several different ones"),
        ("metric=a,a", "metric must be a metric, or several different ones"),
        ("axis=seconds", "axis must be one of virtual_s, bytes, client_flops, joules, rounds, got 'seconds'"),
        ("target=high", "target must be a number, baseline, or best_of:"),
        ("result=mean", "result must be one of late, last, best, got 'mean'"),
        ("horizon=0", "horizon must be an integer in [1, inf), got 0"),
        ("horizon=2.5", "horizon must be an integer in [1, inf), got '2.5'"),
        ("level=null", "level must be a number in (0, 1], got None"),
        ("wait_s=null", "wait_s must be a number in (0, inf), got None"),
        ("level=much", "level must be a number in (0, 1], got 'much'"),
        ("report=1", "report must be one of true, false"),
        ("curves=1", "curves must be one of true, false"),
    ],
)
def test_wrong_arguments_are_reported(argument: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FedcohortError):
        parse_options([argument])
    assert run_with_one_line_errors(lambda: main([argument]), [argument], Path(CONFIGS)) == 2
    text = capsys.readouterr().err
    assert text.startswith(line)
    assert text.count("\n") == 1


def test_a_pipe_gets_markdown_and_a_terminal_gets_tables(
    logs: Logs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(logs)
    text, (page, *figures) = compare_runs(make_options(logs, sweep="s", baseline="a", curves="false"))
    arguments = ["sweep=s", "baseline=a", "curves=false", f"tracking_uri={logs.uri}", f"out={logs.path / 'out'}"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == "\n".join([str(page), "", text, *map(str, figures), ""])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(arguments) == 0
    terminal_text = capsys.readouterr().out
    assert "|" not in terminal_text
    assert "────" in terminal_text
    assert all(f"\n{path}\n" in f"\n{terminal_text}" for path in (page, *figures))


def test_the_command_has_help() -> None:
    line = [sys.executable, "-m", "fedcohort", "compare", "--help"]
    process = subprocess.run(line, capture_output=True, text=True, check=False)
    assert process.returncode == 0
    assert "baseline=null" in process.stdout


def test_a_stalling_server_gives_an_error_with_option_and_address(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # it accepts a connection and never answers
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TrackingError, match=rf"MLflow at {uri} can't be read \(.*wait_s\) took longer than 0.2 s"):
            compare_runs(parse_options([f"tracking_uri={uri}", "wait_s=0.2", f"out={tmp_path}"]))
