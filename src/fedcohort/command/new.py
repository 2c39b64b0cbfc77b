"""Write the files of a new method, which work without changes.

    fedcohort new selector my_method        or aggregator, signal, dataset, model

The files are a module, a yaml (a signal has none) and a test. They use every part of the contract: replace their
content by your paper. No other file is edited. Delete the files to remove the method.
"""

import keyword
import os
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.host.commands import shell_command

# the group of each kind
GROUP_BY_KIND = {
    "selector": "selector",
    "aggregator": "agg",
    "signal": "signal",
    "dataset": "dataset",
    "model": "model",
}


def make_component_files(new_kind: str, new_name: str) -> dict[Path, str]:
    """Return the text of each new file by its path.

    Args:
        new_kind: kind of the new component, a key of `GROUP_BY_KIND`.
        new_name: name of the new component.

    Raises:
        OptionError: the kind is unknown, or the name is invalid.
    """
    ranges.choice("what is new", new_kind, *GROUP_BY_KIND)
    group, class_title = GROUP_BY_KIND[new_kind], "".join(name_part.capitalize() for name_part in new_name.split("_"))
    is_reserved = new_name == "null" or keyword.iskeyword(new_name) or keyword.iskeyword(class_title)
    if is_reserved or not ranges.is_identifier(new_name) or new_name != new_name.lower():
        raise ranges.range_error(
            "its name", "a lower-case Python name such as my_method, which is no keyword and not null", new_name
        )
    path_by_template = {
        f"{new_kind}.py.txt": f"src/fedcohort/{group}/{new_name}.py",
        f"{new_kind}.yaml.txt": f"configs/{group}/{new_name}.yaml",
        f"{new_kind}_test.py.txt": f"tests/{group}/test_{new_name}.py",
    }
    folder = resources.files("fedcohort.command") / "templates"
    return {
        Path(path): Template((folder / template_name).read_text()).substitute(name=new_name, title=class_title)
        for template_name, path in path_by_template.items()
        if (folder / template_name).is_file()
    }


def main(arguments: Sequence[str]) -> int:
    """Write the files of a new component into the working folder, and return the exit code 0.

    Raises `OptionError` if `arguments` are not a kind and a name, or a file exists already.
    """
    if len(arguments) != 2:
        raise OptionError(f"type fedcohort new KIND NAME, where KIND is one of {', '.join(GROUP_BY_KIND)}")
    typed_kind, new_name = arguments
    new_kind = next((k for k, group in GROUP_BY_KIND.items() if typed_kind in (k, group, f"{k}s")), typed_kind)
    text_by_path = make_component_files(new_kind, new_name)
    if existing_file := next((path for path in text_by_path if os.path.lexists(path)), None):  # follows no link
        raise OptionError(f"{existing_file} exists already: choose another name, or remove the file")
    if missing_folder := next((path.parent for path in text_by_path if not path.parent.is_dir()), None):
        raise OptionError(f"there is no folder {missing_folder}: run this command in the folder of train.py")
    for path, file_text in text_by_path.items():
        path.write_text(file_text)
        sys.stdout.write(f"wrote {path}\n")
    group, test_folders = GROUP_BY_KIND[new_kind], f"tests/{GROUP_BY_KIND[new_kind]}"
    if new_kind != "signal":  # which has no yaml, and no law of its own
        test_folders += " tests/laws"
        sys.stdout.write(f"try it: {shell_command('python')} train.py {group}={new_name}\n")
    sys.stdout.write(f'test it: make test T="{test_folders} -k {new_name}"\n')
    return 0
