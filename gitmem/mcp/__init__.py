"""The Model Context Protocol face: a session's memory for any host that speaks MCP."""
