"""What is shown of a run while it goes on and afterwards: terminal, figures, tracking."""
