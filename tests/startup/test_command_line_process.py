"""The messages of `python train.py` about mistyped options and `--help`, in a separate process, and its start time."""

import subprocess
import sys
from pathlib import Path

from command_harness import run_command
from config_options import CONFIGS, ROOT
from fedcohort.startup.check import GROUPS_WITHOUT_TORCH

SELECTORS = sorted(path.stem for path in (CONFIGS / "selector").glob("*.yaml"))


def train(*overrides: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "train.py", *overrides], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_process_prints_only_the_error_line(tmp_path: Path) -> None:
    process = train("selector=ucb_cs", "selector.discont=0.5", f"paths.logs={tmp_path}")
    expected = "selector=ucb_cs has no option 'discont'; its options are discount, index, sigma, tie"
    expected += "; did you mean discount?"
    assert (process.returncode, process.stderr, process.stdout) == (2, f"{expected}\n", "")
    assert not list(tmp_path.iterdir())


def test_help_describes_the_command_and_where_ranges_are() -> None:
    process = run_command("--help", "selector=flash")
    assert process.returncode == 0
    choices = f"selector: {', '.join(SELECTORS[:3])}"
    for part in ("resume=true", "-m selector=", "configs/<group>/<choice>.yaml", choices, "gamma_scale"):
        assert part in process.stdout


def test_help_and_study_status_do_not_import_torch() -> None:
    code = """
import sys
from fedcohort.command.line import COMMANDS, main
for arguments in (["--help"], *([name, "--help"] for name in COMMANDS if name != "run")):
    assert main(arguments) == 0
assert "hydra" not in sys.modules
assert main(["study", "status", "paper_regret"]) == 0
found = {"torch", "lightning", "mlflow", "matplotlib", "scipy"} & sys.modules.keys()
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_early_errors_import_nothing_slow() -> None:
    code = f"""
import sys
from hydra import compose, initialize_config_dir
from fedcohort.startup import command_line, components, run
from fedcohort.startup.compose import compose_config
with initialize_config_dir({str(CONFIGS)!r}, version_base="1.3"):
    cfg = compose("train", return_hydra_config=True)
made = compose_config(cfg, cfg.hydra.runtime.choices, ())
for group in {GROUPS_WITHOUT_TORCH}:
    components.make_component(made, group)
run.make_observers(made)
found = {{"torch", "lightning", "mlflow", "matplotlib"}} & sys.modules.keys()
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
