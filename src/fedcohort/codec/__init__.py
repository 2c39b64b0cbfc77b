"""What an upload costs and loses."""
