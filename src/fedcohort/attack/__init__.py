"""What clients that lie tell the server."""
