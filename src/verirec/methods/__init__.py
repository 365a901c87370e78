"""Methods that train recommenders on selective and noisy feedback: 24 of them, by name in `catalogue`.

Needs torch: ``pip install 'verirec[train]'``.
"""

from verirec.methods.balancing import DRV2, IPSV2, SDR
from verirec.methods.base import Method
from verirec.methods.catalogue import catalogue
from verirec.methods.doubting import LCDMF, RMF, TMF
from verirec.methods.imputing import DR, DRBIAS, DRJL, DRMSE, EIB, MRDRJL, OMEDR, OMEEIB, TDR
from verirec.methods.information import CVIB, DAMF, DIB
from verirec.methods.multiple import MR
from verirec.methods.paths import PenaltyPath, fit_path
from verirec.methods.weighting import IPS, MF, OME, OMEIPS, SNIPS
from verirec.training.recommendations import Recommendations
from verirec.training.recommender import Recommender, TrainingReport, load

__all__ = [
    "CVIB",
    "DAMF",
    "DIB",
    "DR",
    "DRBIAS",
    "DRJL",
    "DRMSE",
    "DRV2",
    "EIB",
    "IPS",
    "IPSV2",
    "LCDMF",
    "MF",
    "MR",
    "MRDRJL",
    "OME",
    "OMEDR",
    "OMEEIB",
    "OMEIPS",
    "RMF",
    "SDR",
    "SNIPS",
    "TDR",
    "TMF",
    "Method",
    "PenaltyPath",
    "Recommendations",
    "Recommender",
    "TrainingReport",
    "catalogue",
    "fit_path",
    "load",
]
