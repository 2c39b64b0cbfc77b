"""A password in an address reaches nothing that a run writes or prints."""

from pathlib import Path

import pytest

from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.host import secrets
from fedcohort.startup.command_line import run_with_one_line_errors
from fedcohort.tracking import server
from fedcohort.tracking.tracker import MlflowTracker
from run_harness import run_training

PASSWORD = "hunter2"
ADDRESSES_WITH_PASSWORD = [
    f"http://me:{PASSWORD}@127.0.0.1:9",
    f"https://{PASSWORD}@mlflow.example/tracking",
    f"http://me:a/{PASSWORD}@127.0.0.1:9",
    f"https://mlflow.example?token={PASSWORD}",
    f"postgresql://me:{PASSWORD}@127.0.0.1/mlflow",
    f"mysql+pymysql://me@127.0.0.1/mlflow?Password={PASSWORD}",
]
ADDRESSES_WITHOUT_PASSWORD = [
    "http://127.0.0.1:9",
    "https://mlflow.example/tracking",
    "postgresql://me@127.0.0.1:5432/mlflow?sslmode=require&sslkey=/home/me/key",
    "sqlite:////a:b/c@d.db",
    "databricks",
    "databricks://scope:prefix",
]


@pytest.mark.parametrize("address", ADDRESSES_WITH_PASSWORD)
def test_an_address_with_a_password_is_rejected_without_repeating_it(address: str) -> None:
    with pytest.raises(OptionError, match="MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD") as caught:
        server.locate_server(address, "x", Path("logs"))
    assert PASSWORD not in str(caught.value)
    assert str(caught.value).startswith("tracking_uri must be an address without a password, got ")


@pytest.mark.parametrize("address", ADDRESSES_WITHOUT_PASSWORD)
def test_an_address_without_a_password_is_accepted(address: str) -> None:
    assert not secrets.has_password(address)
    server.locate_server(address, "x", Path("logs"))


@pytest.mark.parametrize("address", ADDRESSES_WITH_PASSWORD)
@pytest.mark.parametrize("mode", [(), ("-m", "seed=0,1"), ("--multirun",)])
def test_a_typed_password_is_rejected_before_hydra_sees_it(
    capsys: pytest.CaptureFixture[str], address: str, mode: tuple[str, ...]
) -> None:
    def hydra() -> None:
        raise AssertionError("Hydra would print it, and write it into multirun.yaml")

    for override in (f"logger.tracking_uri={address}", f"logger={{tracking_uri:'{address}'}}"):
        assert run_with_one_line_errors(hydra, [*mode, override], CONFIGS) == 2
    output = capsys.readouterr()
    assert PASSWORD not in output.out + output.err
    assert "MLFLOW_TRACKING_PASSWORD" in output.err


def test_a_password_in_a_config_is_rejected_before_a_sweep_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logger").mkdir()
    (tmp_path / "logger" / "ours.yaml").write_text(f"tracking_uri: {ADDRESSES_WITH_PASSWORD[0]}\n")
    calls: list[bool] = []
    assert run_with_one_line_errors(lambda: calls.append(True), ["-m", "logger=ours"], tmp_path) == 2
    assert not calls
    assert f"{tmp_path}/logger/ours.yaml must be" in capsys.readouterr().err


def test_a_rejected_run_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"logger\.tracking_uri must be an address without a password"):
        run_training(tmp_path, "logger=mlflow", f"logger.tracking_uri={ADDRESSES_WITH_PASSWORD[0]}")
    assert not list(tmp_path.iterdir())


def test_a_password_in_the_environment_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    monkeypatch.setattr(MlflowTracker, "_follower", None)
    run_training(
        tmp_path,
        "logger=mlflow",
        f"logger.tracking_uri={ADDRESSES_WITHOUT_PASSWORD[0]}",
        "callback=default",
        "rounds=1",
    )
    MlflowTracker._follower = None
    leaking_files = [path for path in tmp_path.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert leaking_files == []
    output = capfd.readouterr()
    assert PASSWORD not in output.out + output.err
