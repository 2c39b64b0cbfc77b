"""Start MLflow's server for the runs and print the page that opens on them: fedcohort ui [sweep=last]

sweep=last               the sweep whose runs the page shows, by the name of its folder in logs/sweeps. last is the
                         newest sweep with a report; null shows all runs.
experiment=fedcohort     MLflow's experiment.
tracking_uri=sqlite:///logs/mlflow.db
                         For the address of a server (http://...) no server is started, and its page is printed.
port=5000                port of the server that is started. Ctrl-C ends it.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fedcohort import ranges
from fedcohort.command.arguments import read_options
from fedcohort.console.terminal import print_line
from fedcohort.errors import OptionError
from fedcohort.tracking import runs, server, view

DEFAULT_OPTIONS = {
    "sweep": "last",
    "experiment": "fedcohort",
    "tracking_uri": "sqlite:///logs/mlflow.db",
    "port": "5000",
}
SERVER_HOST = "127.0.0.1"


def parse_options(arguments: Sequence[str]) -> dict[str, str]:
    """Return all options of the command, from `arguments` or by default; raise `OptionError` for an invalid one."""
    options = DEFAULT_OPTIONS | read_options(arguments, DEFAULT_OPTIONS)
    ranges.parse_integer("port", options["port"], "[1, 65535]")
    return options


def find_sweep_page(server_location: server.ServerLocation, sweep: str) -> str:
    """Return the path, to be added to the server's address, of the page that shows the runs of a sweep.

    Args:
        server_location: address and experiment of the server.
        sweep: name of the sweep, "last" for the newest, or "null" for all runs.

    Raises:
        OptionError: the experiment or the sweep does not exist.
        TrackingError: the server does not answer.
    """
    run_query = runs.RunQuery(server_location.uri, server_location.experiment)
    with server.explain_errors(f"MLflow at {server_location.uri} can't be read"):
        mlflow_client = runs.connect(run_query)
        experiment = mlflow_client.get_experiment(runs.find_experiment(mlflow_client, run_query))
    sweep_ids = view.list_sweep_views(experiment.tags)
    if sweep == "null" or (sweep == "last" and not sweep_ids):
        return view.format_runs_page_url(experiment.experiment_id)
    if sweep != "last" and sweep not in sweep_ids:
        sweeps_text = f"one of {', '.join(sweep_ids)}" if sweep_ids else "null: no sweep has a report"
        allowed_text = f"{sweeps_text} (`fedcohort compare sweep={sweep} report=true` makes one)"
        sweep_hint = ranges.did_you_mean(sweep, ["last", *sweep_ids])
        raise OptionError(f"{ranges.range_error('sweep', allowed_text, sweep)}{sweep_hint}")
    return view.format_runs_page_url(experiment.experiment_id, sweep_ids[-1] if sweep == "last" else sweep)


def stop_server(server_process: "subprocess.Popen[bytes]") -> None:
    """End the server `server_process` with the processes that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(server_process.pid, signal.SIGTERM)
    server_process.wait()


def main(arguments: Sequence[str]) -> int:
    """Serve MLflow's pages until Ctrl-C, or until the server ends; return the exit code.

    Args:
        arguments: options of the command.

    Raises:
        OptionError: an option is invalid.
        TrackingError: the server does not answer.
    """
    options = parse_options(arguments)
    server_location = server.locate_server(options["tracking_uri"], options["experiment"], Path("logs"))
    page_path = find_sweep_page(server_location, options["sweep"])
    if server_location.uri.startswith("http"):
        sys.stdout.write(f"{server_location.uri.rstrip('/')}/{page_path}\n")
        return 0
    with socket.socket() as port_socket:
        if port_socket.connect_ex((SERVER_HOST, int(options["port"]))) == 0:
            raise ranges.range_error("port", "a free port (another program listens there)", options["port"])
    server_args = [
        "--backend-store-uri",
        server_location.uri,
        "--host",
        SERVER_HOST,
        "--port",
        options["port"],
        "--workers",
        "1",
    ]
    server_env = {
        "PYTHONWARNINGS": "ignore",  # of MLflow's own imports
        **os.environ,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # a dozen processes for language models
    }
    server_process = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", *server_args],
        stdout=subprocess.DEVNULL,  # a line for each request; errors go to stderr
        env=server_env,
        start_new_session=True,  # so that `stop_server` ends the server's own processes, too
    )
    try:
        sys.stdout.write(f"http://{SERVER_HOST}:{options['port']}/{page_path}\n")
        print_line("Open this address once MLflow's server has started, within half a minute. Ctrl-C ends it.")
        return server_process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        stop_server(server_process)
