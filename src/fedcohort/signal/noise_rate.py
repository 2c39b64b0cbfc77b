"""noise_rate: the chance with which a client's labels were flipped. Nobody could send it: only yardsticks read it."""

from fedcohort.signal.base import Static

signal = Static(reveals="how wrong a client's labels are", bytes_up=0, fact="noise_rate", knowable=False)
