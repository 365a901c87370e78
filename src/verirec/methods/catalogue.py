"""All methods by name."""

from __future__ import annotations

from typing import Final

from verirec.methods.balancing import DRV2, IPSV2, SDR
from verirec.methods.base import Method
from verirec.methods.doubting import LCDMF, RMF, TMF
from verirec.methods.imputing import DR, DRBIAS, DRJL, DRMSE, EIB, MRDRJL, OMEDR, OMEEIB, TDR
from verirec.methods.information import CVIB, DAMF, DIB
from verirec.methods.multiple import MR
from verirec.methods.weighting import IPS, MF, OME, OMEIPS, SNIPS

_ALL: Final[tuple[type[Method], ...]] = (
    *(MF, OME, TMF, RMF, LCDMF),
    *(EIB, IPS, SNIPS, CVIB, DAMF, DR, DRJL, MRDRJL, DRBIAS, DRMSE, DIB, MR, SDR, TDR, IPSV2, DRV2),
    *(OMEEIB, OMEIPS, OMEDR),
)

catalogue: Final[dict[str, type[Method]]] = {method.name: method for method in _ALL}
"""Name to class, in the order of the paper's Table 2."""
