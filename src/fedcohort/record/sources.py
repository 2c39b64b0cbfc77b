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
RESULT_READER_PACKAGES = ("api", "command", "study", "jobs", "report", "tracking", "console", "results")
TARGET_KEY = "_target_"  # Hydra's key for the class of a component
PATH_OPTIONS = ("path", "weights")  # options that name a file, or a folder of files, that results depend on
HASHED_END_BYTES = 2**24  # bytes that are read at each end of a large file
OBSERVER_GROUPS = ("callback.", "logger.")  # components that do not change results


def read_source_files(package_folder: Path) -> Mapping[str, bytes]:
    """Read the Python files of the package in `package_folder`, by relative name, such as `selector/random.py`."""
    return {path.relative_to(package_folder).as_posix(): path.read_bytes() for path in package_folder.rglob("*.py")}


@cache
def _read_package_files() -> Mapping[str, bytes]:
    return read_source_files(PACKAGE_FOLDER)  # once: the modules that a process has imported do not change


def digest_sources(config: Mapping[str, Any], sources: Mapping[str, bytes] | None = None) -> str:
    """Return a digest of the package's source files that a run of `config` executes: 12 hex digits.

    The files of choices that the config does not make are left out, so that a new method does not prevent a resume.
    Callbacks and loggers are left out as well.

    Args:
        config: the composed config.
        sources: the package's files, as `read_source_files` returns them; None for those of this package.
    """
    target_options = [(n, str(v)) for n, v in flatten_config(config) if n.split(".")[-1] == TARGET_KEY]
    class_names = {v for n, v in target_options if not n.startswith(OBSERVER_GROUPS)}
    sources = _read_package_files() if sources is None else sources
    hash_state = hashlib.blake2b(digest_size=6)
    for n in sorted(list_files_of_classes(class_names, sources), key=lambda n: n.split("/")):
        for hashed_bytes in (n.encode(), sources[n]):
            hash_state.update(len(hashed_bytes).to_bytes(8, "big") + hashed_bytes)
    return hash_state.hexdigest()


def list_files_of_classes(class_names: Collection[str], sources: Mapping[str, bytes]) -> set[str]:
    """Return the source files of the package that a run with components of these classes may execute.

    In the folder of a config group, such as selector, these are the files of the classes, `base`, `__init__`, and the
    files that they import.

    Args:
        class_names: dotted names of the classes.
        sources: the package's files by relative name.
    """
    parent_by_file = {n: n.rpartition("/")[0] for n in sources}
    class_files = {"/".join(n.split(".")[1:-1]) + ".py" for n in class_names} & set(sources)
    group_folders = {parent_by_file[n] for n in class_files} - {""}
    reached_files = {n for n in sources if parent_by_file[n] not in group_folders}
    reached_files = {n for n in reached_files if n.split("/")[0] not in RESULT_READER_PACKAGES}
    unvisited_files = class_files | {f"{g}/{n}.py" for g in group_folders for n in ("base", "__init__")} & set(sources)
    while unvisited_files:
        reached_files |= unvisited_files
        imported_files = set().union(*(_list_imports(sources[n]) for n in unvisited_files)) & set(sources)
        unvisited_files = {n for n in imported_files if parent_by_file[n] in group_folders} - reached_files
    return reached_files


@cache
def _list_imports(source_code: bytes) -> frozenset[str]:
    """Return the files of the package that imports in `source_code` may name, such as `selector/base.py`."""
    module_names = set()
    for syntax_node in ast.walk(ast.parse(source_code)):
        if isinstance(syntax_node, ast.ImportFrom) and syntax_node.module:
            module_names |= {syntax_node.module, *(f"{syntax_node.module}.{a.name}" for a in syntax_node.names)}
        elif isinstance(syntax_node, ast.Import):
            module_names |= {a.name for a in syntax_node.names}
    return frozenset("/".join(n.split(".")[1:]) + ".py" for n in module_names)


def digest_data(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each existing file or folder that `config` names, by the dotted name of the option.

    Of a large file, only the size and both ends are read; its middle is covered by the checksum of the loaded data. The
    same holds for data from the Hugging Face hub, which no option names.
    """
    path_options = [(k, v) for k, v in flatten_config(config) if k.split(".")[-1] in PATH_OPTIONS]
    path_by_option = {k: expand_home(v) for k, v in path_options if isinstance(v, str)}
    return {k: _digest_path(path) for k, path in path_by_option.items() if path.exists()}


def digest_user_code(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each file that defines a user's component in `config`, by option, such as `model.path`.

    Files that such a file imports are not covered. Callbacks and loggers do not change results.
    """
    options = {k: str(v) for k, v in flatten_config(config) if not k.startswith(OBSERVER_GROUPS)}
    digest_by_option = {}
    for k, v in options.items():
        component, _, key = k.rpartition(".")
        is_user_class = key == TARGET_KEY and not v.startswith("fedcohort.")
        if is_user_class or (key == "path" and options.get(f"{component}.{TARGET_KEY}", "").endswith(".module.Module")):
            module_spec = None
            with suppress(ValueError):  # of a notebook, which is no file
                module_spec = importlib.util.find_spec(v.rpartition(".")[0])
            if module_spec and module_spec.origin and Path(module_spec.origin).is_file():
                digest_by_option[k] = _digest_path(Path(module_spec.origin))
    return digest_by_option


def _digest_path(file_or_folder: Path) -> str:
    hash_state = hashlib.blake2b(digest_size=6)
    for data_file in sorted(file_or_folder.iterdir()) if file_or_folder.is_dir() else (file_or_folder,):
        if data_file.is_file():
            n_bytes = data_file.stat().st_size
            with data_file.open("rb") as opened_file:
                first_bytes = opened_file.read(HASHED_END_BYTES)
                opened_file.seek(max(0, n_bytes - HASHED_END_BYTES))
                hash_state.update(
                    f"{data_file.name}/{n_bytes}/".encode() + first_bytes + opened_file.read(HASHED_END_BYTES)
                )
    return hash_state.hexdigest()
