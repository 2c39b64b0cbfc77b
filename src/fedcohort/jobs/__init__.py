"""Jobs of a sweep: launchers that run lists of overrides, the records of the jobs, and their status."""
