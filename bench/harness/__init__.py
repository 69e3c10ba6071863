"""How a roster member runs: the agent loop, its tools, and the requests it makes."""
