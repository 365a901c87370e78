"""Where work runs: in this process, in others of this machine, or on a Ray cluster; the results do not depend on it."""

from verirec.engine.base import Engine, Serial, current_engine
from verirec.engine.choice import as_engine, running_on
from verirec.engine.processes import Processes
from verirec.engine.ray_core import Ray
from verirec.engine.worker import in_worker

__all__ = ["Engine", "Processes", "Ray", "Serial", "as_engine", "current_engine", "in_worker", "running_on"]
