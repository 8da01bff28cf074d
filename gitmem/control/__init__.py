"""The project's bare `control.git`: agents, deployments, sessions; no document text."""
