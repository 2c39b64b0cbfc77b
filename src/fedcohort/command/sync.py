"""Send the missing rounds and files of runs to MLflow: fedcohort sync RUN_FOLDER... [follow=true tracking_uri=...]

For runs whose server was gone, that were killed, or that were copied from a machine without a server.
follow=true: continue until the run has ended; the process that a run starts for MLflow does this.
tracking_uri, experiment: another place than the run's own, such as tracking_uri=sqlite:///logs/mlflow.db.
wait_s=600: seconds that one folder may take, or each send with follow=true. What was sent by then stays, and the same
        command sends the remaining rounds.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from fedcohort import ranges, units
from fedcohort.command.arguments import read_folders_and_options
from fedcohort.console.terminal import print_for_each
from fedcohort.errors import TrackingError
from fedcohort.host import messages
from fedcohort.host.lock import is_locked
from fedcohort.host.time_limit import limit_block_time
from fedcohort.record import history, manifest, metadata
from fedcohort.record.observer import RunInfo
from fedcohort.tracking import follow, identity, server
from fedcohort.tracking.upload import open_upload

DEFAULT_WAIT_S = 600.0
SEND_INTERVAL_S = 1.0  # between two sends of a run that is followed


def send_missing_rounds(
    folder: Path, tracking_uri: str | None = None, experiment: str | None = None, wait_s: float = DEFAULT_WAIT_S
) -> str:
    """Send the missing rounds and files of the run in `folder`, and return a line that describes what was sent.

    Args:
        folder: folder of the run.
        tracking_uri: server to send to; None for the run's own.
        experiment: experiment to send to; None for the run's own.
        wait_s: seconds that sending may take.

    Raises:
        CheckpointError: `folder` holds no run or a damaged one.
        TrackingError: the server does not answer, or none is known.
    """
    info = _load_run_info(folder)
    server_location = _find_server_location(folder, tracking_uri, experiment)
    sending_errors = server.explain_errors(f"{folder}: MLflow at {server_location.uri} can't be reached", "start it")
    with sending_errors, limit_block_time(wait_s, "sending (wait_s)"):
        return _send_run(info, server_location)


def _load_run_info(folder: Path) -> RunInfo:
    info = metadata.load_info(folder)
    manifest.check_all_files(folder)
    history.read_journal_lines(folder / history.JOURNAL_FILE)
    return info


def _send_run(info: RunInfo, server_location: server.ServerLocation) -> str:
    is_running = is_locked(info.folder / "run.lock")
    run_upload = open_upload(info, server_location, is_running=is_running)
    n_rounds, n_files = run_upload.send_rounds(), 0
    if not is_running:  # a running process ends its run itself
        n_files = run_upload.end_run(info, follow.read_end_status(info.folder))
        identity.mark_upload_complete(info.folder, server_location)
    ending_text = "still running" if is_running else units.format_count(n_files, "file")
    return (
        f"{info.folder}: sent {units.format_count(n_rounds, 'round')}, {ending_text}, to {server_location.uri} "
        f"(run {run_upload.run_id})"
    )


def _find_server_location(folder: Path, tracking_uri: str | None, experiment: str | None) -> server.ServerLocation:
    tracked_run = identity.load_tracked_run(folder)
    if tracked_run is None:
        if tracking_uri is None:
            raise TrackingError(f"{folder} was never tracked: name the server with tracking_uri=")
        return server.locate_server(tracking_uri, experiment or server.DEFAULT_EXPERIMENT, folder.parent)
    if tracking_uri in (None, tracked_run.tracking_uri) and experiment in (None, tracked_run.experiment):
        return tracked_run.server_location
    uri, experiment_name = tracking_uri or tracked_run.tracking_uri, experiment or tracked_run.experiment
    return server.locate_server(uri, experiment_name, folder.parent)


def main(arguments: Sequence[str]) -> int:
    """Send runs to MLflow; return 0 if all of them were sent completely, else 2.

    Raises `OptionError` if `arguments` name no run folder, or have an unknown option.
    """
    run_folders, sync_options = read_folders_and_options(arguments, ("follow", "tracking_uri", "experiment", "wait_s"))
    ranges.choice("follow", sync_options.get("follow", "false"), "true", "false")
    wait_s = ranges.parse_number("wait_s", sync_options.get("wait_s", str(DEFAULT_WAIT_S)), "(0, inf)")
    server_options = sync_options.get("tracking_uri"), sync_options.get("experiment")
    messages.log_to_terminal()

    def send_run(folder: Path) -> str:
        if sync_options.get("follow") != "true":
            return send_missing_rounds(folder, *server_options, wait_s)
        _load_run_info(folder)
        identity.register_server_location(folder, _find_server_location(folder, *server_options))
        follow.follow_run(folder, SEND_INTERVAL_S, wait_s, time.sleep)
        return send_missing_rounds(folder, wait_s=wait_s)  # what an outage has left

    return print_for_each(run_folders, send_run)
