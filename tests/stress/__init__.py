"""Minutes of faults at random moments; `inv stress` runs them."""
