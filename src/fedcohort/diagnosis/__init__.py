"""What a federation is like, measured from clients' reports: label noise, class skew, persistent speeds."""
