"""The source files and data files that decide the results of a run, as digests."""

import ast
import hashlib
import importlib.util
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fedcohort.paths import expand_home
from fedcohort.roles import flatten_config

PACKAGE_FOLDER = Path(__file__).parents[1]
# packages that decide no results
READER_PACKAGES = ("api", "command", "study", "jobs", "report", "tracking", "console", "results")
TARGET_KEY = "_target_"  # Hydra's key for the class of a component
PATH_OPTIONS = ("path", "weights")  # options that name a file, or a folder of files, that results depend on
END_BYTES = 2**24  # bytes that are read at each end of a large file
OBSERVER_GROUPS = ("callback.", "logger.")  # components that do not change results


def read_source_files(top_folder: Path) -> Mapping[str, bytes]:
    """Read the Python files of the package in `top_folder`, by relative name, such as `selector/random.py`."""
    return {path.relative_to(top_folder).as_posix(): path.read_bytes() for path in top_folder.rglob("*.py")}


@cache
def _package_files() -> Mapping[str, bytes]:
    return read_source_files(PACKAGE_FOLDER)  # once: the modules that a process has imported do not change


def digest_sources(config: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> str:
    """Return a digest of the package's source files that a run of `config` executes: 12 hex digits.

    The files of options that the config did not choose are left out, so that a new method does not prevent a resume.
    Callbacks and loggers are left out as well.

    Args:
        config: the composed config.
        files: the package's files, as `read_source_files` returns them; None for those of this package.
    """
    targets = [(name, str(value)) for name, value in flatten_config(config) if name.split(".")[-1] == TARGET_KEY]
    class_names = frozenset(value for name, value in targets if not name.startswith(OBSERVER_GROUPS))
    return _digest_package(class_names) if files is None else _digest_files(class_names, files)


@cache
def _digest_package(class_names: frozenset[str]) -> str:
    return _digest_files(class_names, _package_files())


def _digest_files(class_names: Collection[str], files: Mapping[str, bytes]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for name in sorted(list_files_of_classes(class_names, files), key=lambda name: name.split("/")):
        for name_or_content in (name.encode(), files[name]):
            digest.update(len(name_or_content).to_bytes(8, "big") + name_or_content)
    return digest.hexdigest()


def list_files_of_classes(class_names: Collection[str], files: Mapping[str, bytes]) -> set[str]:
    """Return the source files of the package that a run with these components may execute.

    Of the folder of a config group these are the chosen options, `base`, `__init__`, and the files of such folders that
    they import.

    Args:
        class_names: dotted names of the classes.
        files: the package's files by relative name.
    """
    parents = {name: name.rpartition("/")[0] for name in files}
    option_files = {"/".join(name.split(".")[1:-1]) + ".py" for name in class_names} & set(files)
    groups = {parents[name] for name in option_files} - {""}
    run_files = {name for name in files if parents[name] not in groups and name.split("/")[0] not in READER_PACKAGES}
    queue = option_files | {f"{group}/{name}.py" for group in groups for name in ("base", "__init__")} & set(files)
    while queue:
        run_files |= queue
        imported_files = set().union(*(_list_imports(files[name]) for name in queue)) & set(files)
        queue = {name for name in imported_files if parents[name] in groups} - run_files
    return run_files


@cache
def _list_imports(source: bytes) -> frozenset[str]:
    """Return the files of the package that the import statements in `source` may name, such as `selector/base.py`."""
    module_names = set()
    for syntax_node in ast.walk(ast.parse(source)):
        if isinstance(syntax_node, ast.ImportFrom) and syntax_node.module:
            module_names |= {syntax_node.module, *(f"{syntax_node.module}.{alias.name}" for alias in syntax_node.names)}
        elif isinstance(syntax_node, ast.Import):
            module_names |= {alias.name for alias in syntax_node.names}
    return frozenset("/".join(name.split(".")[1:]) + ".py" for name in module_names)


def digest_data(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each file or folder that `config` names and that exists, by dotted option.

    Of a large file the size and both ends are read; of a folder, its files by name. The checksum of the loaded data
    covers data of the hub, which no option names, and the middle of large files.
    """
    path_options = [(name, value) for name, value in flatten_config(config) if name.split(".")[-1] in PATH_OPTIONS]
    path_by_option = {name: expand_home(value) for name, value in path_options if isinstance(value, str)}
    return {name: _digest_path(path) for name, path in path_by_option.items() if path.exists()}


def digest_user_code(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each file with a user's component in `config`, by dotted option, such as `model.path`.

    Files that such a file imports are not covered. Callbacks and loggers do not change results.
    """
    options = {name: str(value) for name, value in flatten_config(config) if not name.startswith(OBSERVER_GROUPS)}
    digest_by_option = {}
    for name, value in options.items():
        component, _, key = name.rpartition(".")
        is_user_class = key == TARGET_KEY and not value.startswith("fedcohort.")
        if is_user_class or (key == "path" and options.get(f"{component}.{TARGET_KEY}", "").endswith(".module.Module")):
            module_spec = None
            with suppress(ValueError):  # of a notebook, which is no file
                module_spec = importlib.util.find_spec(value.rpartition(".")[0])
            if module_spec and module_spec.origin and Path(module_spec.origin).is_file():
                digest_by_option[name] = _digest_path(Path(module_spec.origin))
    return digest_by_option


def _digest_path(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for file in sorted(path.iterdir()) if path.is_dir() else (path,):
        if file.is_file():
            n_bytes = file.stat().st_size
            with file.open("rb") as opened_file:
                first_bytes = opened_file.read(END_BYTES)
                opened_file.seek(max(0, n_bytes - END_BYTES))
                digest.update(f"{file.name}/{n_bytes}/".encode() + first_bytes + opened_file.read(END_BYTES))
    return digest.hexdigest()
