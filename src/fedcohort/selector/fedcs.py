"""FedCS: as many clients as can finish before a deadline, the cheapest in time first (Nishio and Yonetani 2019).

Nishio, Yonetani, "Client Selection for Federated Learning with Heterogeneous Resources in Mobile Edge", ICC 2019, arXiv
1804.08333.

    C:  candidates, drawn uniformly from the available clients;  at first S is empty and Theta = 0
    cost of x:  down(S + x) - down(S) + up_x + max(0, compute_x - Theta)
    step:  x is the candidate with the least cost;  Theta' = Theta + up_x + max(0, compute_x - Theta)
    stop:  if down(S + x) + Theta' >= T_round;  otherwise S <- S + x, Theta <- Theta'

Theta is the time from the end of the download to the last upload. down(S) is the download of the slowest client of S,
because all receive the same broadcast. Uploads are one after the other, and a client computes while others upload. The
first candidate that does not fit ends the search, because all others cost more. The rule determines the cohort's size.

The abstract and one third-party implementation were read, the full text was not.

Departures from the paper:
- At most m clients are selected, and the candidates are m by default. They are a share of all clients in the paper.
- T_round is a multiple of the mean expected duration of a whole job, so that it fits every device, or a number of
  seconds (limit_in=seconds). The paper's value, recalled as three minutes, is not confirmed.
- The seconds are the expected ones of each client's device, which are sent once. The paper queries the candidates in
  every round.
- Where no candidate fits, the cheapest one is selected: a round without clients would change nothing.
- Serial uploads are the plan. The simulated clock has parallel uploads, so that rounds are shorter than planned.
- Scheduling and aggregation take no time.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`), and is no candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Stateless, StatelessSelector, draw_successively
from fedcohort.types import Ids, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class FedCs(StatelessSelector):
    """FedCS, a client selector: as many clients as finish within a time limit, planned one after the other.

    Attributes:
        limit: time within which the selected clients are planned to finish, in the unit `limit_in`.
        limit_in: unit of `limit`: "jobs", the mean expected duration of a whole job over all clients, or "seconds".
        candidates: number of clients that the cohort is planned from; None for the number to select.
    """

    limit: float
    limit_in: str
    candidates: int | None

    backs_off: ClassVar[bool] = True
    may_choose_fewer: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"expected_s", "expected_up_s", "expected_down_s"})

    def __post_init__(self) -> None:
        ranges.number("limit", self.limit, "(0, inf)")
        ranges.choice("limit_in", self.limit_in, "jobs", "seconds")
        ranges.integer("candidates", self.candidates, "[1, inf)", allow_null=True)

    def shortlist(self, cohort: int) -> int:
        return self.candidates or cohort

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        job_s, upload_s, download_s = (ctx.signals[s] for s in ("expected_s", "expected_up_s", "expected_down_s"))
        time_limit_s = self.limit * (float(job_s.mean()) if self.limit_in == "jobs" else 1.0)
        candidate_ids = draw_successively(np.ones(ctx.n_clients), ctx.available, self.shortlist(ctx.cohort), ctx.rng)
        training_s = np.maximum(job_s - upload_s - download_s, 0.0)
        upload_order = schedule_uploads(
            download_s[candidate_ids], training_s[candidate_ids], upload_s[candidate_ids], time_limit_s
        )
        return Selection(np.sort(candidate_ids[upload_order[: ctx.cohort]])), state


def schedule_uploads(download_s: Values, training_s: Values, upload_s: Values, time_limit_s: float) -> Ids:
    """Return the positions of the candidates that finish in time, in the order of their uploads, int64 [m].

    Each next candidate adds the fewest seconds, the first one in case of ties. If no candidate finishes in time, the
    fastest one is returned.

    Args:
        download_s: seconds of each candidate's download, [n].
        training_s: seconds of each candidate's local training, [n].
        upload_s: seconds of each candidate's upload, [n]; uploads follow one after the other.
        time_limit_s: seconds from the broadcast within which all uploads end.
    """
    upload_order, broadcast_s, uploads_end_s, remaining_positions = list[int](), 0.0, 0.0, np.arange(len(download_s))
    while len(remaining_positions):
        added_upload_s = upload_s[remaining_positions] + np.maximum(
            0.0, training_s[remaining_positions] - uploads_end_s
        )
        added_round_s = np.maximum(download_s[remaining_positions] - broadcast_s, 0.0) + added_upload_s
        next_position = int(np.argmin(added_round_s))
        next_candidate = int(remaining_positions[next_position])
        is_candidate_late = broadcast_s + uploads_end_s + added_round_s[next_position] >= time_limit_s
        if is_candidate_late and upload_order:
            break
        upload_order.append(next_candidate)
        if is_candidate_late:
            break
        broadcast_s = max(broadcast_s, float(download_s[next_candidate]))
        uploads_end_s = uploads_end_s + float(added_upload_s[next_position])
        remaining_positions = np.delete(remaining_positions, next_position)
    return np.array(upload_order, dtype=np.int64)
