"""`make mutants`: plant small faults in named files, one at a time, and see whether the tests detect them.

    python tests/mutants.py [--number 100] [--seed 0] [file or folder ...]

Without a file, faults are planted in the files that differ from the main branch (or from HEAD~1). Cosmic Ray's
operators and two further ones find the places. One fault is drawn for each place, and --number of the places. A mutant
runs in a fork of a process that has imported everything already, and is never written to disk: tests that start another
process do not see it. Tests come in stages, until one fails: first the file's tests (tests/<path>/test_<name>*.py). For
a choice of a config group the laws of the group follow, with the part of tests/whole/test_configs.py on its options.
Then come the tests in the same folder that import the file, then those of the modules that import it.

Survivors are printed as differences; those that compute the same are listed in docs/mutants.toml, with the argument.
"""

import argparse
import ast
import io
import os
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from source_faults import ROOT, Mutant, draw_mutants

SRC, TESTS, EQUIVALENT = ROOT / "src", ROOT / "tests", ROOT / "docs" / "mutants.toml"
OUTCOMES = ("killed", "survived", "timeout", "equivalent")
PROCESSES = {"signal", "subprocess"}
TESTS_IN_OTHER_FOLDERS = (
    "tests.whole.test_cited_tables",
)  # fast tests outside the folder of the module that they test
MEMORY = 16 * 2**30  # bytes that a mutant may use


@cache
def list_imports() -> dict[str, set[str]]:
    """Return the imports of each module of package and tests; those of a test include its helpers' imports."""
    paths = [*SRC.rglob("*.py"), *TESTS.rglob("*.py")]
    results = {get_module_name(path): _list_imported(ast.parse(path.read_text())) for path in paths}
    helpers = {name.removeprefix("tests."): names for name, names in results.items() if "test_" not in name}
    for name in results:
        if name.startswith("tests."):
            results[name] = results[name].union(*(helpers.get(used, set()) for used in results[name]))
    return results


def _list_imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def get_module_name(path: Path) -> str:
    relative_path = path.relative_to(SRC) if path.is_relative_to(SRC) else path.relative_to(ROOT)
    return ".".join(relative_path.with_suffix("").parts).removesuffix(".__init__")


def list_mirror_tests(module: str) -> list[str]:
    """Return tests/<path>/test_<name>.py and test_<name>_*.py."""
    *folders, name = module.split(".")[1:]
    test_folder = TESTS.joinpath(*folders)
    return sorted(str(path) for path in [*test_folder.glob(f"test_{name}.py"), *test_folder.glob(f"test_{name}_*.py")])


def list_law_tests(module: str) -> list[str]:
    """Return the law tests of an option, as file::option (see `ChosenOptions`), and the tests of its yaml."""
    path = module.split(".")[1:]
    files = {TESTS / "laws" / f"test_{path[0]}_laws.py": path[-1], TESTS / "whole" / "test_configs.py": "-".join(path)}
    is_option = (ROOT / "configs").joinpath(*path).with_suffix(".yaml").exists() and list_mirror_tests(module)
    return [f"{file}::{option}" for file, option in files.items() if is_option and file.exists()]


def list_stages(module: str) -> list[list[str]]:
    """Return lists of tests, the fastest first, without those that start processes, where few mutants exist."""
    users = sorted(name for name, used in list_imports().items() if module in used)
    mirror = module.replace("fedcohort", "tests", 1).rpartition(".")[0]
    neighbours = [name for name in users if name.startswith(f"{mirror}.test_") or name in TESTS_IN_OTHER_FOLDERS]
    neighbours = [name for name in neighbours if not PROCESSES & list_imports()[name]]
    tests = [
        list_mirror_tests(module),
        list_law_tests(module),
        [str(ROOT / f"{name.replace('.', '/')}.py") for name in neighbours],
    ]
    tests += [
        [
            test
            for name in users
            if name.startswith("fedcohort.")
            for test in list_mirror_tests(name) + list_law_tests(name)
        ]
    ]
    seen_tests: set[str] = set()
    test_stages: list[list[str]] = []
    for stage in tests:
        test_stages.append([test for test in dict.fromkeys(stage) if test not in seen_tests])
        seen_tests.update(stage)
    return [stage for stage in test_stages if stage]


class ChosenOptions:
    """Plugin of pytest that keeps only the law tests, and the cases of `for_all`, of some options."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.options: dict[str, set[str]] = defaultdict(set)
        for file, _, option in (test.partition("::") for test in tests):
            self.options[file] |= {option} if option else set()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if self._keeps_test(item)]

    def _keeps_test(self, item: Any) -> bool:
        is_wanted = self._is_tested(item.path, re.split(r"[\[\]-]", item.name))
        for cases in () if is_wanted else getattr(item.function, "cases", ()):
            if chosen := [case for case in cases if self._is_tested(item.path, re.findall(r"\w+", case[0]))]:
                cases[:], is_wanted = chosen, True
        return is_wanted

    def _is_tested(self, path: Path, names: Iterable[str]) -> bool:
        options = self.options.get(str(path))
        return not options or any(set(option.split("-")) <= set(names) for option in options)


def run_tests(tests: Sequence[str], *options: str) -> int:
    """Run tests in this process, and return pytest's exit code."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *options, *files], plugins=[ChosenOptions(tests)]))


def unload_modules(module: str) -> None:
    """Unload the modules to import again: tests, the module's package, and all modules that import these."""
    package, graph = module.rpartition(".")[0], list_imports()
    stale = {name for name in graph if name == module or (name.startswith(f"{package}.") and package != "fedcohort")}
    while new_stale := {name for name, used in graph.items() if used & stale} - stale:
        stale |= new_stale
    stale.discard("fedcohort")  # it imports its packages on first use, and keeps them as attributes
    for name, loaded in list(sys.modules.items()):
        file = str(getattr(loaded, "__file__", None) or "")
        if name in stale or file.startswith(str(TESTS)):
            del sys.modules[name]
            parent, _, last = name.rpartition(".")
            if parent in sys.modules:
                vars(sys.modules[parent]).pop(last, None)


def run_forked(module: str, tests: Sequence[str], mutant: Mutant | None, limit_s: int) -> tuple[int, float]:
    """Run tests in a fork; return (exit code of pytest or minus the signal, CPU seconds)."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        unload_modules(module)
        if mutant:
            mutant.plant()
        os._exit(run_tests(tests))
    end = time.monotonic() + 20 * limit_s  # the child may sleep, or wait for a processor
    while True:
        ended_pid, status, used = os.wait4(child, os.WNOHANG)
        if ended_pid:
            return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)


def judge_mutant(mutant: Mutant, module: str) -> str:
    """Return the outcome of a mutant, one of OUTCOMES."""
    for tests in list_stages(module):
        code, _ = run_forked(module, tests, mutant, measure_limit_s(module, tuple(tests)))
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return "timeout"
        if code not in (0, 5):
            return "killed"
    return "survived"


@cache
def measure_limit_s(module: str, tests: tuple[str, ...]) -> int:
    """Return the CPU seconds allowed for a mutant; exit if a test fails without one."""
    code, cpu_s = run_forked(module, tests, None, 1800)
    if code not in (0, 5):
        raise SystemExit(f"these tests fail without a mutant: {' '.join(tests)}")
    return int(5 * cpu_s) + 10


def read_equivalent() -> dict[tuple[str, str, str], str]:
    """Return the reason of each equivalent mutant in docs/mutants.toml."""
    entries = tomllib.loads(EQUIVALENT.read_text())["equivalent"] if EQUIVALENT.exists() else []
    return {(entry["file"], entry["before"], entry["after"]): entry["why"] for entry in entries}


def list_changed_files() -> list[Path]:
    """Return the files that differ from the main branch, or from the previous commit on it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True).stdout.strip()

    since = git("merge-base", "HEAD", "main")
    since = "HEAD~1" if since in ("", git("rev-parse", "HEAD")) else since
    return [ROOT / line for line in git("diff", "--name-only", since).splitlines()]


def list_modules(names: Iterable[str]) -> list[Path]:
    """Return the modules in the files and folders, or the changed modules."""
    paths = [Path(name).resolve() for name in names] or list_changed_files()
    file_paths = [inner for path in paths for inner in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return [path for path in file_paths if path.is_file() and path.is_relative_to(SRC) and path.name != "__init__.py"]


def format_table(counts: dict[Path, Counter[str]]) -> str:
    """Return a Markdown table with a row per file; the share excludes equivalent mutants."""
    lines = ["| file | mutants | killed | survived | timeout | equivalent | noticed |", "|---|---|---|---|---|---|---|"]
    total: Counter[str] = sum(counts.values(), Counter())
    for name, count in [*((str(path.relative_to(SRC / "fedcohort")), c) for path, c in counts.items()), ("all", total)]:
        n_valid = count.total() - count["equivalent"]
        share = f"{100 * (count['killed'] + count['timeout']) / n_valid:.1f} %" if n_valid else "-"
        lines.append(f"| {name} | {count.total()} | {' | '.join(str(count[item]) for item in OUTCOMES)} | {share} |")
    return "\n".join(lines)


def main(command_line: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Plant faults, and see whether the tests notice.")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--number", type=int, default=0, help="how many, 0 for one at every place")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(command_line)
    equivalent = read_equivalent()
    by_path: dict[Path, list[Mutant]] = {}
    for mutant in sorted(
        draw_mutants(list_modules(arguments.files), arguments.number, arguments.seed), key=lambda mutant: mutant.key
    ):
        by_path.setdefault(mutant.path, []).append(mutant)
    counts: dict[Path, Counter[str]] = {path: Counter() for path in by_path}
    for path, file_mutants in by_path.items():
        module = get_module_name(path)
        with redirect_stdout(io.StringIO()):  # what they import is there before the forks
            run_tests([test for stage in list_stages(module) for test in stage], "--collect-only")
        for mutant in file_mutants:
            outcome = "equivalent" if mutant.key in equivalent else judge_mutant(mutant, module)
            counts[path][outcome] += 1
            if outcome == "survived":
                print(f"\nsurvived in {path.relative_to(ROOT)}\n{mutant.difference()}", flush=True)
        print(f"{path.relative_to(ROOT)}: {dict(counts[path])}", flush=True)
    print(f"\n{arguments.number or 'all'} mutants, seed {arguments.seed}\n\n{format_table(counts)}")
    return 0


if __name__ == "__main__":
    import hydra  # noqa: F401

    import lightning  # noqa: F401  before the first fork: they take longer than the tests

    raise SystemExit(main(sys.argv[1:]))
