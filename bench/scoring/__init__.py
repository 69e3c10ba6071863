"""What a trial is worth: its outcome, and the host's own judgement of the evidence."""
