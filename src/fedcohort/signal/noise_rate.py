"""noise_rate: probability with which a client's labels were flipped; no client knows it, and only oracles read it."""

from fedcohort.signal.base import Static

signal = Static(reveals="the rate of wrong labels of a client", bytes_up=0, fact="noise_rate", knowable=False)
