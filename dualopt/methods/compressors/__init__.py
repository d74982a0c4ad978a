"""What clients send in place of a vector: fewer bits for a number, fewer numbers, and what that costs in variance."""

from dualopt.methods.compressors._protocol import Compressor
from dualopt.methods.compressors._uplink import REFERENCES, Uplink, kept_part
from dualopt.methods.compressors.cohorts import CoordinateCohorts
from dualopt.methods.compressors.identity import Identity
from dualopt.methods.compressors.natural import NaturalCompression
from dualopt.methods.compressors.quantisation import RandomQuantisation
from dualopt.methods.compressors.rand_k import RandK
from dualopt.methods.compressors.rounding import Rounding
from dualopt.methods.compressors.top_k import TopK

__all__ = [
    "REFERENCES",
    "Compressor",
    "CoordinateCohorts",
    "Identity",
    "NaturalCompression",
    "RandK",
    "RandomQuantisation",
    "Rounding",
    "TopK",
    "Uplink",
    "kept_part",
]
