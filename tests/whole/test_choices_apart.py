"""A run needs no component that it does not choose: the three files of another paper can be deleted."""

import ast
import shutil
from functools import cache
from pathlib import Path

from command_harness import Command
from config_options import CONFIGS, METHOD_GROUPS, ROOT, list_options, load_options
from run_harness import SMALL, compose_overrides

FIRST = ("selector=random", "augmentation=crop_flip")
SECOND = (
    "selector=powd",
    "agg=scaffold",
    "server=adam",
    "objective=gce",
    "regulariser=prox",
    "client=adam",
    "samples=random",
    "deadline=fixed",
    "codec=quant",
    "device=instant",
    "availability=bernoulli",
    "attack=loss_inflation",
    "signal_noise=laplace",
    "proxy=noise",
    "heterogeneity=noise_inputs",
    "dataset=synthetic",
    "model=logreg",
)
SHORT = (*(override for override in SMALL if not override.startswith("model=")), "rounds=1")


@cache
def modules() -> dict[str, Path]:
    """Return the module of every choice, and its file."""
    targets = {
        str(load_options(group, choice)["_target_"]).rpartition(".")[0]
        for group in METHOD_GROUPS
        for choice in list_options(group)
    }
    return {name: ROOT / "src" / Path(*name.split(".")).with_suffix(".py") for name in targets}


def list_imported_modules(tree: ast.AST) -> set[str]:
    """The modules that a file imports, anywhere in it, or names in a text as `fedcohort.selector.flash`."""
    modules_found = set()
    for syntax_node in ast.walk(tree):
        if isinstance(syntax_node, ast.ImportFrom) and syntax_node.module:
            modules_found |= {
                syntax_node.module,
                *(f"{syntax_node.module}.{alias.name}" for alias in syntax_node.names),
            }
        elif isinstance(syntax_node, ast.Import):
            modules_found |= {alias.name for alias in syntax_node.names}
        elif isinstance(syntax_node, ast.Constant) and isinstance(text := syntax_node.value, str):
            if "fedcohort." not in text:  # which is fast
                continue
            modules_found |= {name for name in modules() if f"{name}." in f"{text}."}
    return modules_found & set(modules())


def test_no_module_imports_a_choice() -> None:
    """No method may import another method: mathematics that two papers share is a separate module."""
    importers = {}
    for path in (ROOT / "src").rglob("*.py"):
        other_modules = {name for name in list_imported_modules(ast.parse(path.read_text())) if modules()[name] != path}
        if other_modules:
            importers[str(path.relative_to(ROOT))] = other_modules
    assert not importers


def list_choices(*overrides: str) -> set[tuple[str, str]]:
    """Return (group, choice) of every yaml that the run reads, including nested components."""
    return {(key.split("@")[0], choice) for key, choice in compose_overrides(*overrides).choices.items()}


def copy_package(home: Path, used: set[tuple[str, str]]) -> str:
    """Copy the package to `home` without the .py and .yaml of all choices, presets and experiments but `used`."""
    shutil.copytree(ROOT / "src", home / "src")
    shutil.copytree(CONFIGS, home / "configs")
    shutil.copy(ROOT / "train.py", home)
    with (home / "src" / "fedcohort" / "__init__.py").open("a") as file:
        file.write('\nprint("from", __file__)\n')
    for path in (home / "configs").glob("*/*.yaml"):
        group, choice = path.parent.name, path.stem
        if group in (*METHOD_GROUPS, "heterogeneity", "experiment") and (group, choice) not in used:
            path.unlink()
            (home / "src" / "fedcohort" / group / f"{choice}.py").unlink(missing_ok=True)
    return str(home)


def test_two_runs_without_common_options_need_no_other_option(tmp_path: Path) -> None:
    first, second = list_choices(*SHORT, *FIRST), list_choices(*SHORT, *SECOND)
    assert not {(group, choice) for group, choice in first & second if group in METHOD_GROUPS}, (
        "each choice is missing in one of them"
    )
    checkouts = [copy_package(tmp_path / "first", first), copy_package(tmp_path / "second", second)]
    runs = [
        Command(*SHORT, *overrides, checkout=Path(checkout))
        for checkout, overrides in zip(checkouts, (FIRST, SECOND), strict=True)
    ]
    for checkout, trained_run in zip(checkouts, [run.finish() for run in runs], strict=True):
        assert trained_run.returncode == 0, trained_run.stdout + trained_run.stderr
        assert f"from {checkout}/src" in trained_run.stdout, "another copy of the package ran"
    assert all(len(list(Path(checkout, "logs").glob("**/weights.pt"))) == 1 for checkout in checkouts)
