"""What clients send in place of a vector: fewer bits for a number, fewer numbers, and what that costs in variance."""

from dualopt.compressors._protocol import Compressor
from dualopt.compressors._steps import damped, kept, received
from dualopt.compressors.cohorts import CoordinateCohorts
from dualopt.compressors.identity import Identity
from dualopt.compressors.natural import NaturalCompression
from dualopt.compressors.quantisation import RandomQuantisation
from dualopt.compressors.rand_k import RandK
from dualopt.compressors.top_k import TopK

__all__ = [
    "Compressor",
    "CoordinateCohorts",
    "Identity",
    "NaturalCompression",
    "RandK",
    "RandomQuantisation",
    "TopK",
    "damped",
    "kept",
    "received",
]
