"""The Docker engine: what it is and can do, whose containers are whose, and what killed runs left in it."""
