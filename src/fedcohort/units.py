"""Numbers as text with units: bytes, operations, seconds and per cent."""

import math

BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
TIME_UNITS = (  # seconds of the smaller unit, how many make the larger, both names, seconds where the next scale begins
    (1, 60, "min", "s", 7200),
    (60, 60, "h", "min", 172_800),
    (3600, 24, "d", "h", math.inf),
)
METRIC_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def format_bytes(n_bytes: float) -> str:
    """Return `n_bytes`, a number of bytes, as text in powers of 1000: 1234567 -> '1.23 MB'."""
    return _format_with_prefix(n_bytes, BYTE_UNITS)


def format_flops(n_flops: float) -> str:
    """Return `n_flops`, a number of floating-point operations, as text: 1.2e12 -> '1.2 TFLOP'."""
    return _format_with_prefix(n_flops, [f"{prefix}FLOP" for prefix in METRIC_PREFIXES])


def format_joules(energy_j: float) -> str:
    """Return `energy_j`, an energy in joules, as text in powers of 1000: 1234567 -> '1.23 MJ'."""
    return _format_with_prefix(energy_j, [f"{prefix}J" for prefix in METRIC_PREFIXES])


def format_seconds(duration_s: float) -> str:
    """Return `duration_s` seconds as text in two units, the smaller one rounded: 4321 -> '1 h 12 min'."""
    if not math.isfinite(duration_s):
        return "-"
    if duration_s < 120:
        return f"{duration_s:.3g} s"
    small_unit_s, units_per_large_unit, large_unit, small_unit, _ = next(
        time_unit for time_unit in TIME_UNITS if round(duration_s / time_unit[0]) * time_unit[0] < time_unit[4]
    )
    n_small_units = round(duration_s / small_unit_s)
    return f"{n_small_units // units_per_large_unit} {large_unit} {n_small_units % units_per_large_unit} {small_unit}"


def format_rough_seconds(duration_s: float) -> str:
    """Return `duration_s` seconds as rounded text in one unit: 2400 -> '40 min'."""
    if duration_s < 90:
        return f"{max(1, round(duration_s))} s"
    if duration_s < 5400:
        return f"{round(duration_s / 60)} min"
    return f"{duration_s / 3600:.1f} h" if duration_s < 48 * 3600 else f"{round(duration_s / 86_400)} days"


def format_count(n: int, singular_noun: str) -> str:
    """Return the number `n` with `singular_noun`, in the plural unless `n` is 1: `1 seed`, `2 seeds`."""
    return f"{n} {singular_noun}{'s' * (n != 1)}"


def format_percent(ratio: float) -> str:
    """Return `ratio`, a share in [0, 1], as text in per cent: 0.8731 -> '87.3 %'."""
    return f"{100 * ratio:.1f} %" if math.isfinite(ratio) else "-"


def format_number(value: float) -> str:
    """Return `value` as text with four significant digits: 0.123456 -> '0.1235'."""
    return f"{value:.4g}" if math.isfinite(value) else "-"


def _format_with_prefix(value: float, unit_names: "tuple[str, ...] | list[str]") -> str:
    if not math.isfinite(value):
        return "-"
    prefix_index = 0
    while abs(value) >= 999.5 and prefix_index < len(unit_names) - 1:
        value, prefix_index = value / 1000, prefix_index + 1
    return f"{value:.3g} {unit_names[prefix_index]}"
