"""Buzzbench: measures teams of agents on Buzz with Harbor."""

__version__ = "0.1.0"
