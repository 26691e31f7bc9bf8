"""Memory over MCP: tools and resources for agents, on standard input and output or on loopback HTTP."""
