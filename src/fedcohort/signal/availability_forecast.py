"""availability_forecast: a device's forecast of the share of a coming time slot in which it will be ready.

Options of the query: start_s and end_s, the slot in virtual seconds from now. The simulated forecast is exact. It is 1
if the availability model has no schedule (availability=always and availability=bernoulli).
"""

from fedcohort.signal.base import Forecast

signal = Forecast(
    reveals="when a device will be idle, on power and on Wi-Fi",
    bytes_up=4,
    compute=lambda ready_share, clients, options: ready_share(clients, options["start_s"], options["end_s"]),
)
