"""Feature noise: disturbances of clients' inputs."""
