"""Label noise: the probability that a client's label is wrong, and the wrong label."""
