"""Proxy sets: unlabelled inputs of the server, for methods that distil the clients' models."""
