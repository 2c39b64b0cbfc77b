"""Make the components that a config names in `_target_`, after checking that each class fulfils its contract.

Importing a module executes code. The config of a run folder may come from another person: it may name only classes of
fedcohort, and the name is checked before the import.
"""

import importlib
import inspect
import re
import typing
from collections.abc import Mapping, Set

from hydra.utils import get_object

from fedcohort import ranges
from fedcohort.component import Component
from fedcohort.contracts import find_error_line
from fedcohort.errors import FedcohortError, OptionError
from fedcohort.round.guard import add_result_checks
from fedcohort.startup import options
from fedcohort.startup.compose import Composition

ConfiguredObject = typing.Any  # a component, an observer or a callback
CLASS_KEY = "_target_"
FEDCOHORT_CLASS_PATTERN = re.compile(r"fedcohort(\.[A-Za-z]\w*)+")
BASE_CLASS_BY_GROUP = {  # module and class, where they differ from the group's `base` and the name of the group
    "agg": ("agg.base", "Aggregator"),
    "server": ("server.base", "ServerOptimizer"),
    "logger": ("record.observer", "Observer"),
}


# Names of classes, one of which the class at some path of the config must inherit, and the text after "must be"
Contract = tuple[Set[str], str]
# by their names, as the import of Lightning's class would be slow
CALLBACK_CONTRACT: Contract = (
    {"fedcohort.record.observer.Observer", "lightning.pytorch.callbacks.callback.Callback"},
    "an observer (fedcohort.record.observer.Observer) or a Lightning callback",
)


def _make_class_contract(base_class: type) -> Contract:
    """Return the contract of classes that inherit from `base_class`: its name, and a text for messages."""
    class_path = f"{base_class.__module__}.{base_class.__name__}"
    return {class_path}, f"a class that inherits {class_path}"


def find_base_class(group: str) -> type:
    """Return the base class that the components of the config group `group` inherit."""
    module_name, class_name = BASE_CLASS_BY_GROUP.get(group, (f"{group}.base", group.title().replace("_", "")))
    base_class: type = getattr(importlib.import_module(f"fedcohort.{module_name}"), class_name)
    return base_class


def make_component(composition: Composition, group: str, *, is_from_run: bool = False) -> ConfiguredObject:
    """Return the component of a group; None if the group is empty (logger=none).

    Errors in the component's methods name the component (`add_result_checks`).

    Args:
        composition: the composed config.
        group: the config group.
        is_from_run: whether the config comes from a run folder, so that only classes of fedcohort are accepted.

    Raises:
        OptionError: a class or an option can't be used.
        ComponentError: the component lacks an attribute of its contract, or it has a wrong type.
    """
    node = composition.config.get(group)
    if not node:
        return None
    arguments = {k: v for k, v in node.items() if k not in options.list_node_options(group)}
    option = composition.format_choice(group)
    component = build_component(arguments, group, option, is_from_run=is_from_run)
    return add_result_checks(component, group, option, find_base_class(group))


def build_component(
    node: Mapping[str, object], path: str, option: str, contract: Contract | None = None, *, is_from_run: bool = False
) -> ConfiguredObject:
    """Return the component that a node of the config describes, with the components inside it.

    Args:
        node: options by name, with the class in `_target_`.
        path: path of the node in the config, for messages.
        option: the option as typed, for messages.
        contract: contract of the class; None for inheriting the base class of the group `path`.
        is_from_run: whether the config comes from a run folder, so that only classes of fedcohort are accepted.

    Raises:
        OptionError: a class or an option can't be used.
    """
    contract = contract or _make_class_contract(find_base_class(path))
    if CLASS_KEY not in node:
        raise ranges.range_error(f"{path}.{CLASS_KEY}", contract[1], None)
    _check_class_contracts(node, path, option, contract, is_from_run=is_from_run)
    return _instantiate_node(node, path, option)


def _instantiate_node(node: object, path: str, option: str) -> ConfiguredObject:
    """Return the component that a node of the config describes, after its classes have been checked.

    Args:
        node: options by name, with the class in `_target_`; anything else is returned unchanged.
        path: path of the node in the config, for messages.
        option: the option as typed, for messages.
    """
    if not isinstance(node, Mapping) or CLASS_KEY not in node:
        return node
    arguments = {str(k): v for k, v in node.items() if k != CLASS_KEY}
    arguments = {k: _instantiate_node(v, f"{path}.{k}", f"{path}.{k}") for k, v in arguments.items()}
    node_class = import_class(node[CLASS_KEY], path, option)
    try:
        return node_class(**arguments)
    except OptionError as error:
        raise OptionError(f"{path}.{error}") from error
    except FedcohortError:
        raise
    except TypeError as error:
        raise OptionError(f"{option}: {_describe_wrong_options(node_class, arguments, error)}") from error
    except Exception as error:
        error_line = find_error_line(error.__traceback__, str(node[CLASS_KEY]).rpartition(".")[0])
        reason = f"{' '.join(str(error).split())}{f' ({type(error).__name__} in {error_line})' if error_line else ''}"
        raise OptionError(f"{option}: {node[CLASS_KEY]} rejects its options: {reason}") from error


def _describe_wrong_options(node_class: type, arguments: Mapping[str, object], call_error: TypeError) -> str:
    """Return a text that names the unknown and missing options of a class.

    Args:
        node_class: the class.
        arguments: options that were passed, by name.
        call_error: the error of the call, whose text is returned if no option is unknown or missing.
    """
    variadic_kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    class_parameters = inspect.signature(node_class).parameters
    keyword_parameters = {
        k: parameter for k, parameter in class_parameters.items() if parameter.kind not in variadic_kinds
    }
    required_options = {
        k for k, parameter in keyword_parameters.items() if parameter.default is inspect.Parameter.empty
    }
    option_problems = [f"has no option {k!r}" for k in sorted(set(arguments) - set(keyword_parameters))]
    option_problems += [f"needs the option {k!r}" for k in sorted(required_options - set(arguments))]
    return f"{', '.join(option_problems) or call_error}; {options.describe_valid_options(keyword_parameters)}"


def _check_class_contracts(node: object, path: str, option: str, contract: Contract, *, is_from_run: bool) -> None:
    """Check the class of a component and of those inside it. None of them is called.

    Args:
        node: options by name, with the class in `_target_`; anything else is a value.
        path: path of the node in the config, for messages.
        option: the option as typed, for messages.
        contract: contract of the class.
        is_from_run: whether the config comes from a run folder, so that only classes of fedcohort are accepted.

    Raises:
        OptionError: for a class that does not fulfil its contract, and for a key that would change its call.
    """
    if not isinstance(node, Mapping):
        return
    option_names = [str(k) for k in node if not str(k).startswith("_")]
    if unknown_key := next((str(k) for k in node if str(k).startswith("_") and k != CLASS_KEY), None):
        raise options.make_unknown_option_error(path, unknown_key, option_names)
    node_class = None
    if CLASS_KEY in node:
        node_class = import_class(node[CLASS_KEY], path, option, is_from_run=is_from_run)
        base_class_names, allowed_text = contract
        if base_class_names.isdisjoint(f"{b.__module__}.{b.__name__}" for b in node_class.__mro__):
            is_network = any(b.__module__ == "torch.nn.modules.module" for b in node_class.__mro__)
            advice_text = (
                f". For your own network, type model=module model.path={node[CLASS_KEY]}" if is_network else ""
            )
            raise OptionError(
                f"{ranges.range_error(f'{path}.{CLASS_KEY}', allowed_text, node[CLASS_KEY])}{advice_text}"
            )
    for option_name in option_names:
        inner_path = f"{path}.{option_name}"
        inner_contract = _find_inner_contract(node_class, option_name, contract)
        _check_class_contracts(node[option_name], inner_path, inner_path, inner_contract, is_from_run=is_from_run)


def _find_inner_contract(owner_class: type | None, option_name: str, contract: Contract) -> Contract:
    """Return the contract of a component that is an option of another one.

    The type of the option is the contract. If this type is no component, any component is accepted.

    Args:
        owner_class: the class that has the option; None for a mapping of plain options.
        option_name: name of the option.
        contract: contract of the owner, which applies to the values of a mapping.
    """
    if owner_class is None:
        return contract
    try:
        type_hint: object = typing.get_type_hints(owner_class.__init__).get(option_name)  # type: ignore[misc]
    except (NameError, TypeError, AttributeError):
        type_hint = None
    hint_classes = [
        hint_class for hint_class in (type_hint, *typing.get_args(type_hint)) if inspect.isclass(hint_class)
    ]
    return _make_class_contract(
        next((hint_class for hint_class in hint_classes if Component in hint_class.__mro__), Component)
    )


def import_class(class_path: object, path: str, option: str, *, is_from_run: bool = False) -> type:
    """Return the class that `class_path` names.

    Args:
        class_path: dotted name of the class.
        path: path of its node in the config, for messages.
        option: the option as typed, for messages.
        is_from_run: whether the config comes from a run folder, so that only classes of fedcohort are accepted.

    Raises:
        OptionError: the name can't be imported, is not a class, or is not accepted.
    """
    try:
        imported_class = (
            _import_own_class(class_path, path) if is_from_run else get_object(typing.cast(str, class_path))
        )
    except OptionError:
        raise
    except Exception as error:
        cause = error.__cause__  # Hydra's own message has several lines
        reason = str(cause) if isinstance(cause, ImportError | AttributeError) else " ".join(str(error).split("\n")[:2])
        raise OptionError(f"{option}: _target_ {class_path!r} can't be used: {reason}") from error
    if not inspect.isclass(imported_class):
        raise ranges.range_error(f"{path}.{CLASS_KEY}", "a class", class_path)
    return imported_class


def _import_own_class(class_path: object, path: str) -> object:
    """Return the class that `class_path`, a dotted name, names in a module of fedcohort; no other module is imported.

    `path` is the path of the class's node in the config, for messages.
    """
    allowed_text = "a class of fedcohort, because the config comes from a run folder and must not execute other code"
    error = ranges.range_error(f"{path}.{CLASS_KEY}", allowed_text, class_path)
    if not isinstance(class_path, str) or not FEDCOHORT_CLASS_PATTERN.fullmatch(class_path):
        raise error
    module_name, _, class_name = class_path.rpartition(".")
    imported_class = vars(importlib.import_module(module_name)).get(class_name)
    if getattr(imported_class, "__module__", None) != module_name:  # such as fedcohort.record.provenance.subprocess
        raise error
    return imported_class
