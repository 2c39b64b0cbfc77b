"""Noise in the numbers that clients report, for differential privacy: the choices of `signal_noise=`."""
