"""Class losses of six clients; clients 3 and 5 have about 1.9 nats more in both classes."""

import numpy as np

from fedcohort.diagnosis.excess_loss import ClassLosses

COUNTS = np.array([[6.0, 4], [5, 5], [4, 6], [5, 5], [8, 2], [2, 8]])
MEANS = np.array([[0.5, 0.9], [0.4, 1.0], [0.6, 1.1], [2.4, 2.8], [0.5, 1.0], [2.6, 2.9]])
LOSSES = ClassLosses(COUNTS, COUNTS * MEANS, COUNTS * (MEANS**2 + 0.25), np.full(6, 35.0))
