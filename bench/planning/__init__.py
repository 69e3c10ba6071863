"""Planning: from what a person asked for to a frozen plan. It reads, and starts and writes nothing."""
