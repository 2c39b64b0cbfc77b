"""How clients optimise."""
