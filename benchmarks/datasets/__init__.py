"""Real problems by name, their training, validation and test parts, and generated ones."""

from benchmarks.datasets.generated import dna_windows, gaussians
from benchmarks.datasets.problems import Problem, data_bytes, generate, load
from benchmarks.datasets.splits import Split, load_split, tiny_split

__all__ = [
    "Problem",
    "Split",
    "data_bytes",
    "dna_windows",
    "gaussians",
    "generate",
    "load",
    "load_split",
    "tiny_split",
]
