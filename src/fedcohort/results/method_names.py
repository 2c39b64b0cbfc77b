"""Published names of methods, and the groups in which figures show them.

The name of a method is in its own file: the beginning of the docstring, as "Fed-CBS" of `selector/fedcbs.py`. The file
`method_names.yaml` has the names of options without a file, and of methods that studies define. A user's method has
the name of its option.
"""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import yaml

METHOD_GROUPS = ("published", "ours", "tuned", "stand-ins", "oracles", "for reference")  # in the order of figures
PUBLISHED_GROUP, OWN_METHODS_GROUP, TUNED_GROUP, STAND_IN_GROUP, ORACLE_GROUP, REFERENCE_GROUP = METHOD_GROUPS
METHOD_FOLDERS = ("selector", "agg")  # config groups whose options are methods
METHOD_NAMES: dict[str, tuple[str, str]] = {  # option, or method of a study: name and group
    method: (name, group)
    for method, (name, group) in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text()).items()
}


@cache
def describe_method(method: str) -> tuple[str, str]:
    """Return the published name of `method`, an option or a method of a study, and its group, one of `METHOD_GROUPS`.

    `flash_whitened_tuned` is "FLASH, whitened, tuned": a method without a published name is a variant if a known
    method and `_` are the beginning of its option.
    """
    if method in METHOD_NAMES:
        return METHOD_NAMES[method]
    for method_folder in METHOD_FOLDERS:
        module_spec = importlib.util.find_spec(f"fedcohort.{method_folder}.{method}") if method.isidentifier() else None
        if module_spec is not None and module_spec.origin is not None:
            summary = (ast.get_docstring(ast.parse(Path(module_spec.origin).read_text())) or "").partition("\n\n")[0]
            method_group = PUBLISHED_GROUP if re.search(r"\d{4}\)", summary) else OWN_METHODS_GROUP
            method_group = ORACLE_GROUP if method.startswith("oracle_") else method_group
            return re.split(r"[:,(]", summary)[0].strip(), method_group
    method_stem, _, method_variant = method.rpartition("_")
    name = describe_method(method_stem)[0] if method_stem else ""
    if name in ("", method_stem):
        return method, OWN_METHODS_GROUP
    return f"{name}, {method_variant}", TUNED_GROUP if method_variant == "tuned" else OWN_METHODS_GROUP


def name_method(method: str) -> str:
    """Return the published name of `method`, such as "pow-d, plain mean" of `powd_mean`."""
    return describe_method(method)[0]
