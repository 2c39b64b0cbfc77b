"""The classes that a config may name in `_target_`: each is checked against its contract before it is called.

Importing a module already runs code. The config of a run folder may come from another person: it may name classes of
fedcohort only, and the name is checked before anything is imported.
"""

import importlib
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hydra.utils import get_object

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.part import Part
from fedcohort.record.observer import Observer
from fedcohort.startup import options

TARGET = "_target_"
OURS = re.compile(r"fedcohort(\.[A-Za-z]\w*)+")
CONTRACTS = {  # module and name, where they aren't the group's `base` and the group
    "agg": ("agg.base", "Aggregator"),
    "server": ("server.base", "ServerOptimizer"),
    "logger": ("record.observer", "Observer"),
}


@dataclass(frozen=True)
class Contract:
    """What a class must be to stand in a place of the config.

    Attributes:
        allowed: completes "must be".
        accepts: whether a class fulfils the contract.
    """

    allowed: str
    accepts: Callable[[type], bool]

    @classmethod
    def inherits(cls, base: type) -> "Contract":
        """Require a class that names `base` among its ancestors."""
        return cls(f"a class that inherits {base.__module__}.{base.__name__}", lambda found: base in found.__mro__)


def protocol_of(group: str) -> type:
    """Return the protocol in the group's `base` module, which its classes inherit."""
    module, name = CONTRACTS.get(group, (f"{group}.base", group.title().replace("_", "")))
    protocol: type = getattr(importlib.import_module(f"fedcohort.{module}"), name)
    return protocol


def contract_of(group: str) -> Contract:
    """Return the contract of a group: its classes inherit the group's protocol."""
    return Contract.inherits(protocol_of(group))


def _watches(found: type) -> bool:
    """Return whether it is an observer, or a callback of Lightning, without the import, which takes seconds."""
    names = {(base.__module__, base.__name__) for base in found.__mro__}
    return Observer in found.__mro__ or ("lightning.pytorch.callbacks.callback", "Callback") in names


CALLBACK = Contract("an observer (fedcohort.record.observer.Observer) or a callback of Lightning's", _watches)


def resolve(target: object, where: str, word: str, *, foreign: bool = False) -> type:
    """Return the class that `target` names, without calling it.

    Args:
        target: its dotted name.
        where: path of the node in the config, for messages.
        word: how a user calls the component, for messages.
        foreign: whether the config comes from a run folder, so that only classes of fedcohort are accepted.

    Raises:
        OptionError: for a name that can't be imported, of something else than a class, or of code that isn't
            fedcohort's in a foreign config.
    """
    try:
        found = _resolve_ours(target, where) if foreign else get_object(typing.cast(str, target))
    except OptionError:
        raise
    except Exception as error:
        raise OptionError(f"{word}: _target_ {target!r} can't be used: {_reason(error)}") from error
    if not inspect.isclass(found):
        raise ranges.refuse(f"{where}.{TARGET}", "a class", target)
    return found


def _resolve_ours(target: object, where: str) -> object:
    """Return the class of that name which a module of fedcohort defines; nothing else is imported."""
    refused = ranges.refuse(
        f"{where}.{TARGET}",
        "a class that fedcohort defines, as the config comes from a run folder, which is data and not code",
        target,
    )
    if not isinstance(target, str) or not OURS.fullmatch(target):
        raise refused
    module, _, name = target.rpartition(".")
    found = vars(importlib.import_module(module)).get(name)
    if getattr(found, "__module__", None) != module:  # such as fedcohort.record.provenance.subprocess
        raise refused
    return found


def check(node: object, where: str, word: str, contract: Contract, *, foreign: bool = False) -> None:
    """Check the class of a component and of those inside it. None of them is called.

    Args:
        node: options by name, with the class in `_target_`; anything else is a value.
        where: path of the node in the config, for messages.
        word: how a user calls the component, for messages.
        contract: what the class must be.
        foreign: as for `resolve`.

    Raises:
        OptionError: for a class that doesn't fulfil its contract, and for a key that would change how it is called.
    """
    if not isinstance(node, Mapping):
        return
    names = [str(key) for key in node if not str(key).startswith("_")]
    if strange := next((str(key) for key in node if str(key).startswith("_") and key != TARGET), None):
        raise options.unknown(where, strange, names)
    found = None
    if TARGET in node:
        found = resolve(node[TARGET], where, word, foreign=foreign)
        if not contract.accepts(found):
            network = any(base.__module__ == "torch.nn.modules.module" for base in found.__mro__)
            cure = f". A network of yours is typed as model=module model.path={node[TARGET]}" if network else ""
            raise OptionError(f"{ranges.refuse(f'{where}.{TARGET}', contract.allowed, node[TARGET])}{cure}")
    for name in names:
        inner = f"{where}.{name}"
        check(node[name], inner, inner, _contract_inside(found, name, contract), foreign=foreign)


def _contract_inside(owner: type | None, name: str, contract: Contract) -> Contract:
    """Return what a component must be that stands in the option `name` of the class `owner`.

    The type of the option says it. Without one of a group's, any component of a run may stand there. owner: None for
    plain options by name, whose values are under the contract around them.
    """
    if owner is None:
        return contract
    try:
        hint: object = typing.get_type_hints(owner.__init__).get(name)  # type: ignore[misc]
    except (NameError, TypeError, AttributeError):
        hint = None
    classes = [kind for kind in (hint, *typing.get_args(hint)) if inspect.isclass(kind)]
    return Contract.inherits(next((kind for kind in classes if Part in kind.__mro__), Part))


def _reason(error: BaseException) -> str:
    """Return the error's message in one line; Hydra says on several what it could not import."""
    if isinstance(missing := error.__cause__, ImportError | AttributeError):
        return str(missing)
    return " ".join(str(error).split("\n")[:2])
