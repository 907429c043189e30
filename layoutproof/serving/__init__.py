"""One warm process for agents and editors: an MCP server, and workers that run the commands. Start in `server`."""
