"""`fedcohort ui`: MLflow's page of the runs."""
# ruff: noqa: F811

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fedcohort.command import ui
from fedcohort.errors import OptionError, TrackingError
from fedcohort.tracking import server, view
from tracking.databases import EXPERIMENT, Logs, logs  # noqa: F401


def test_the_page_is_that_of_a_sweep_or_of_all_runs(logs: Logs) -> None:
    place = logs.place()
    client = server.connect(place)
    experiment = server.find_or_create_experiment(client, place)
    all_runs_page = f"#/experiments/{experiment}/runs?workflowType=machine_learning&viewStateShareKey=fedcohort"
    assert ui.find_sweep_page(place, "last") == ui.find_sweep_page(place, "null") == all_runs_page
    for sweep in ("b", "a"):
        view.save_sweep_view(client, experiment, sweep, ["selector"])
    assert ui.find_sweep_page(place, "b").endswith("viewStateShareKey=sweep-b")
    assert ui.find_sweep_page(place, "last").endswith("viewStateShareKey=sweep-a"), "the newest"
    with pytest.raises(OptionError, match=r"sweep must be one of b, a \(`fedcohort compare sweep=c report=true`"):
        ui.find_sweep_page(place, "c")
    with pytest.raises(OptionError, match=r"got 'lat'; did you mean last\?"):
        ui.find_sweep_page(place, "lat")


def test_a_missing_folder_is_named(logs: Logs, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="tracking_uri must be an existing database"):
        ui.find_sweep_page(server.locate_server(None, EXPERIMENT, tmp_path), "null")
    with pytest.raises(OptionError, match=f"experiment must be one of .*, got '{EXPERIMENT}"):
        ui.find_sweep_page(logs.place(), "null")
    with pytest.raises(TrackingError, match=r"MLflow at http://127.0.0.1:9 can't be read"):
        ui.main(["tracking_uri=http://127.0.0.1:9"])
    for arguments, message in ((["port"], "type name=value"), (["port=0"], "port must be"), (["prt=1"], "prt")):
        with pytest.raises(OptionError, match=message):
            ui.parse_options(arguments)


def test_a_deleted_experiment_is_named_with_the_command_that_restores_it(logs: Logs) -> None:
    client = server.connect(logs.place())
    experiment = server.find_or_create_experiment(client, logs.place())
    client.delete_experiment(experiment)
    message = rf"'{EXPERIMENT}' is deleted in MLflow at .*mlflow experiments restore -x {experiment}, or name another"
    with pytest.raises(TrackingError, match=message):
        ui.find_sweep_page(logs.place(), "null")


class Server:
    """Stands in for the process of MLflow's server."""

    arguments: tuple[str, ...] = ()
    warnings = ""
    pid = 2**22 + 1  # of no process

    def __init__(self, arguments: list[str], env: dict[str, str], **process_options: object) -> None:
        Server.arguments, Server.warnings = tuple(arguments), env["PYTHONWARNINGS"]

    def wait(self) -> int:
        return 0


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_the_server_runs_until_it_or_the_command_ends(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_interrupted: bool
) -> None:
    server.find_or_create_experiment(server.connect(logs.place()), logs.place())
    killed_groups: list[int] = []
    errors = iter([KeyboardInterrupt] if is_interrupted else [])

    def wait(process: Server) -> int:
        for error in errors:
            raise error
        return 0

    monkeypatch.setattr(Server, "wait", wait)
    monkeypatch.setattr(subprocess, "Popen", Server)
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    monkeypatch.setattr(os, "killpg", lambda group, number: killed_groups.append(group))
    arguments = [f"tracking_uri={logs.uri}", f"experiment={EXPERIMENT}", "port=5999"]
    assert ui.main(arguments) == 0
    assert capsys.readouterr().out.startswith("http://127.0.0.1:5999/#/experiments/")
    assert logs.uri in Server.arguments
    assert Server.warnings == "ignore"
    assert killed_groups == [Server.pid]
    with socket.create_server(("127.0.0.1", 0)) as used:
        port: Any = used.getsockname()[1]
        with pytest.raises(OptionError, match="port must be a free port"):
            ui.main([*arguments[:2], f"port={port}"])
