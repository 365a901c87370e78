"""Methods that train recommenders on selective and noisy feedback, by name in `catalogue`: the paper's 24, and more.

A new method is a file and a line here. Needs torch: ``pip install 'verirec[train]'``.
"""

# ruff: noqa: I001 (families in the order in which one learns them)

from verirec.methods.base import Method as Method
from verirec.methods.trained import Trained as Trained
from verirec.methods.weighting import MF as MF, OME as OME, IPS as IPS, SNIPS as SNIPS, OMEIPS as OMEIPS
from verirec.methods.doubting import TMF as TMF, RMF as RMF, LCDMF as LCDMF
from verirec.methods.imputing import EIB as EIB, DR as DR, DRJL as DRJL, MRDRJL as MRDRJL, DRBIAS as DRBIAS
from verirec.methods.imputing import DRMSE as DRMSE, TDR as TDR, OMEEIB as OMEEIB, OMEDR as OMEDR
from verirec.methods.information import CVIB as CVIB, DIB as DIB, DAMF as DAMF
from verirec.methods.multiple import MR as MR
from verirec.methods.balancing import SDR as SDR, IPSV2 as IPSV2, DRV2 as DRV2
from verirec.methods.kernel_balancing import AKBDR as AKBDR
from verirec.methods.calibrating import DCEDR as DCEDR
from verirec.methods.clicking import RELMF as RELMF
from verirec.methods.auto import Auto as Auto
from verirec.methods.tuning import tune as tune
from verirec.methods.paths import PenaltyPath as PenaltyPath, fit_path as fit_path
from verirec.training.fitting import ModelSpec as ModelSpec
from verirec.training.objective import ImputedLabels as ImputedLabels, Objective as Objective
from verirec.training.objective import PseudoLabels as PseudoLabels, Step as Step
from verirec.training.recommendations import Recommendations as Recommendations
from verirec.training.recommender import Recommender as Recommender, load as load
from verirec.training.report import TrainingReport as TrainingReport

catalogue: dict[str, type[Method] | type[Auto]] = {
    one.name: one
    for one in list(globals().values())
    if isinstance(one, type) and issubclass(one, Method | Auto) and one != Method
}
"""Name to class: all of them methods but "auto", which searches among them."""
