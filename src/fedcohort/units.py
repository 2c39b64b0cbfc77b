"""Numbers as text with units: bytes, operations, seconds and per cent."""

import math

BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
TIME_UNITS = (  # seconds of the smaller unit, how many make the larger, both names, seconds where the next scale begins
    (1, 60, "min", "s", 7200),
    (60, 60, "h", "min", 172_800),
    (3600, 24, "d", "h", math.inf),
)
METRIC_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def bytes_(value: float) -> str:
    """Return `value`, a number of bytes, as text in powers of 1000: 1234567 -> '1.23 MB'."""
    return _format_with_prefix(value, BYTE_UNITS)


def flops(value: float) -> str:
    """Return `value`, a number of floating-point operations, as text: 1.2e12 -> '1.2 TFLOP'."""
    return _format_with_prefix(value, [f"{prefix}FLOP" for prefix in METRIC_PREFIXES])


def joules(value: float) -> str:
    """Return `value`, an energy in joules, as text in powers of 1000: 1234567 -> '1.23 MJ'."""
    return _format_with_prefix(value, [f"{prefix}J" for prefix in METRIC_PREFIXES])


def seconds(value: float) -> str:
    """Return `value` seconds as text in two units, the smaller one rounded: 4321 -> '1 h 12 min'."""
    if not math.isfinite(value):
        return "-"
    if value < 120:
        return f"{value:.3g} s"
    unit, unit_s, large_unit, small_unit, _ = next(row for row in TIME_UNITS if round(value / row[0]) * row[0] < row[4])
    n_small_units = round(value / unit)
    return f"{n_small_units // unit_s} {large_unit} {n_small_units % unit_s} {small_unit}"


def rough_seconds(value: float) -> str:
    """Return `value` seconds as rounded text in one unit: 2400 -> '40 min'."""
    if value < 90:
        return f"{max(1, round(value))} s"
    if value < 5400:
        return f"{round(value / 60)} min"
    return f"{value / 3600:.1f} h" if value < 48 * 3600 else f"{round(value / 86_400)} days"


def percent(value: float) -> str:
    """Return `value`, a share in [0, 1], as text in per cent: 0.8731 -> '87.3 %'."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else "-"


def number(value: float) -> str:
    """Return `value` as text with four significant digits: 0.123456 -> '0.1235'."""
    return f"{value:.4g}" if math.isfinite(value) else "-"


def _format_with_prefix(value: float, unit_names: "tuple[str, ...] | list[str]") -> str:
    if not math.isfinite(value):
        return "-"
    power = 0
    while abs(value) >= 999.5 and power < len(unit_names) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {unit_names[power]}"
