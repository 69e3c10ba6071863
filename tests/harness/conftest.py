"""The harness needs a real relay under its tools: the trial's fixtures have one."""

from tests.trial.conftest import bench, shared_stack

__all__ = ["bench", "shared_stack"]
