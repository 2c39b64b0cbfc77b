"""The options of a run that belong to no component: a field here with its range, and its default in a yaml.

`startup/options.py` checks the typed values against these ranges; the rounds read the fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from fedcohort import ranges
from fedcohort.round.budget import UNTIL_OPTIONS, Budget

OptionCheck = Callable[[str, Any], None]


def integer_check(allowed_interval: str, *, allow_null: bool = False) -> OptionCheck:
    """Return a function that checks that an option is an integer in `allowed_interval`, or null if `allow_null`."""
    return partial(ranges.integer, interval=allowed_interval, allow_null=allow_null)


def number_check(allowed_interval: str, *, allow_null: bool = False) -> OptionCheck:
    """Return a function that checks that an option is a number in `allowed_interval`, or null if `allow_null`."""
    return partial(ranges.number, interval=allowed_interval, allow_null=allow_null)


def choice_check(*valid_choices: str) -> OptionCheck:
    """Return a function that checks that an option has one of these `valid_choices`."""
    return lambda option_name, option_value: ranges.choice(option_name, option_value, *valid_choices)


def make_setting(option_name: str, option_check: OptionCheck) -> Any:  # noqa: ANN401  as `dataclasses.field`, it is assigned to typed names
    """Return a dataclass field of `Settings` whose value is read from an option of the config, and checked.

    Args:
        option_name: dotted name of the option, as in "eval.every".
        option_check: function of the option's name and value that raises `OptionError` outside the range.
    """
    return field(metadata={"option": option_name, "check": option_check})


@dataclass(frozen=True)
class Settings:
    """Options of the training rounds; configs/train.yaml and configs/engine have their defaults.

    Attributes:
        config_hash: hash of the config and the seed, which a checkpoint must match.
        seed: seed of the run.
        cohort: number of clients per round.
        rounds: largest number of rounds.
        until_virtual_s, until_bytes, until_acc, until_client_flops, until_joules: limits of the `Budget`; None for no
            limit.
        watts: power of a client that computes; None if energy of computation is not measured.
        joules_per_byte: energy of a transmitted byte.
        eval_every: rounds between evaluations on the server's data.
        clients_every: rounds between evaluations on the clients' data; 0 for never.
        clients_sample: number of clients that are evaluated; None for all.
        average: "ema" to evaluate the average of the models over rounds, or "none".
        average_decay: weight of a model in this average relative to that of the next round.
        update_every: rounds between comparisons of the mean update with that of all clients; 0 for never.
        window_s: virtual seconds between a round's end and the next selection.
        update_limit: an update is excluded if its norm exceeds this factor times (1 + norm of the model).
        store_limit_gb: gigabytes of clients' vectors above which these are stored in files.
        engine: implementation of local training, such as "vectorised", or "auto".
        slices: parts of a round, for finer progress bars.
        bn_var: "plain" to average batch-norm variances directly, "moments" by second moments.
        closed_form: whether chains of linear and ReLU layers are trained with hand-written gradients.
        channels_last: whether images are in the channels-last layout ("yes", "no"), or "auto".
        chunk: number of clients that the vectorised engine trains at the same time.
        precision: precision of matrix products in local training.
    """

    config_hash: str
    seed: int = make_setting("seed", integer_check("[0, inf)"))
    cohort: int = make_setting("cohort", integer_check("[1, inf)"))
    rounds: int = make_setting("rounds", integer_check("[1, inf)"))
    until_virtual_s: float | None = make_setting("until.virtual_s", number_check("(0, inf)", allow_null=True))
    until_bytes: float | None = make_setting("until.bytes", number_check("(0, inf)", allow_null=True))
    until_acc: float | None = make_setting("until.acc", number_check("(0, 1]", allow_null=True))
    until_client_flops: float | None = make_setting("until.client_flops", number_check("(0, inf)", allow_null=True))
    until_joules: float | None = make_setting("until.joules", number_check("(0, inf)", allow_null=True))
    watts: float | None = make_setting("device.watts", number_check("(0, inf)", allow_null=True))
    joules_per_byte: float = make_setting("device.joules_per_byte", number_check("[0, inf)"))
    eval_every: int = make_setting("eval.every", integer_check("[1, inf)"))
    clients_every: int = make_setting("eval.clients_every", integer_check("[0, inf)"))
    clients_sample: int | None = make_setting("eval.clients_sample", integer_check("[1, inf)", allow_null=True))
    average: str = make_setting("eval.average", choice_check("none", "ema"))
    average_decay: float = make_setting("eval.average_decay", number_check("[0, 1)"))
    update_every: int = make_setting("eval.update_every", integer_check("[0, inf)"))
    window_s: float = make_setting("deadline.window_s", number_check("[0, inf)"))
    update_limit: float = make_setting("update_limit", number_check("(0, inf)"))
    store_limit_gb: float = make_setting("client_store.limit_gb", number_check("[0, inf)"))
    engine: str = make_setting("engine.kind", choice_check("auto", "sequential", "vectorised", "debug"))
    slices: int = make_setting("engine.slices", integer_check("[1, 100000]"))
    bn_var: str = make_setting("engine.bn_var", choice_check("plain", "moments"))
    closed_form: bool = make_setting("engine.closed_form", ranges.flag)
    channels_last: str = make_setting("engine.channels_last", choice_check("auto", "yes", "no"))
    chunk: int = make_setting("engine.chunk", integer_check("[1, inf)"))
    precision: str = make_setting("engine.precision", choice_check("float32", "tf32", "bf16"))

    @property
    def measures_energy(self) -> bool:
        """Whether the options give the energy of a client's computation or messages."""
        return self.watts is not None or self.joules_per_byte > 0

    @property
    def budget(self) -> Budget:
        """The limits at which the run ends."""
        return Budget(self.rounds, **{limit_name: getattr(self, f"until_{limit_name}") for limit_name in UNTIL_OPTIONS})

    @classmethod
    def from_config(cls, config: Mapping[str, Any], config_hash: str) -> "Settings":
        """Return the settings in a composed config, whose options `startup/options.py` has checked.

        Args:
            config: the config.
            config_hash: hash of the config and the seed.
        """
        return cls(config_hash, **{k: _read_option(config, option_name) for k, option_name, _ in list_setting_checks()})


def list_setting_checks() -> list[tuple[str, str, OptionCheck]]:
    """Return the field name, the dotted option and the range check of each setting."""
    return [
        (setting_field.name, setting_field.metadata["option"], setting_field.metadata["check"])
        for setting_field in fields(Settings)
        if setting_field.metadata
    ]


def _read_option(config: Mapping[str, Any], option_name: str) -> Any:  # noqa: ANN401  the option's type, which its check ensures
    config_node, _, option_in_group = option_name.rpartition(".")
    return (config[config_node] if config_node else config)[option_in_group]
