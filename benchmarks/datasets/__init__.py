"""Real problems by name, and generated ones for smoke tests."""

from benchmarks.datasets.problems import Problem, data_bytes, generate, load

__all__ = ["Problem", "data_bytes", "generate", "load"]
