"""noise_rate: probability with which a client's labels were flipped by `label_noise`.

No client knows it, and only oracles read it. False labels of an attack do not change it.
"""

from fedcohort.signal.base import Static

signal = Static(reveals="the rate of wrong labels of a client", bytes_up=0, fact="noise_rate", knowable=False)
