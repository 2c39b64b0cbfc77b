"""The plain loop that every engine is measured against: one thread, one model, an optimizer per client.

python benchmarks/bare.py W1 [rounds]
"""

import json
import sys
import time

import torch
from torch.nn import functional as F

from workloads import WORKLOADS


def main(name: str, rounds: int) -> None:
    torch.set_num_threads(1)
    work = WORKLOADS[name]
    x, y, x_eval, y_eval = work.data()
    offsets, model = work.offsets(), work.network()
    server = {key: value.clone() for key, value in model.state_dict().items()}
    times, losses = [], []
    for t in range(rounds):
        began = time.perf_counter()
        total, mean = 0, {key: torch.zeros_like(value) for key, value in server.items()}
        for k in work.chosen(t):
            a, b = int(offsets[k]), int(offsets[k + 1])
            model.load_state_dict(server)
            optimizer = torch.optim.SGD(model.parameters(), lr=work.lr)
            for start in range(a, b, work.batch):
                rows = slice(start, min(start + work.batch, b))
                optimizer.zero_grad()
                F.cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
            total += b - a
            for key, value in model.state_dict().items():
                mean[key] += value * (b - a)
        server = {key: value / total for key, value in mean.items()}
        model.load_state_dict(server)
        with torch.no_grad():
            parts = [
                F.cross_entropy(model(x_eval[i : i + 1000]), y_eval[i : i + 1000], reduction="sum")
                for i in range(0, len(y_eval), 1000)
            ]
        losses.append(float(torch.stack(parts).sum()) / len(y_eval))
        times.append(time.perf_counter() - began)
    sys.stdout.write(
        "RESULT " + json.dumps({"peer": "bare", "workload": name, "times": times, "losses": losses}) + "\n"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6)
