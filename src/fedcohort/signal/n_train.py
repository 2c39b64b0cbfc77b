"""n_train: a client's number of training samples, n_k; p_k = n_k / sum n follows from it."""

from fedcohort.signal.base import Static

signal = Static(reveals="how many training samples a client has", bytes_up=4, fact="n_train")
