"""Harbor's view of a team: one agent stands for all of it."""
