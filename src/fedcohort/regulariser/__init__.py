"""What is added to a local objective."""
