"""pass_units: units of local work in one pass over a client's training set.

It is 1 if a unit is an epoch, and the number of mini-batches where a unit is a step. The server computes it from
n_train, which is sent where it is read.
"""

from fedcohort.signal.base import Static

signal = Static(reveals="roughly how many training samples a client has", bytes_up=4, fact="pass_units")
