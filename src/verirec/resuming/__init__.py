"""Long work that goes on where it was stopped: finished pieces of it stay on disk, under a key of all it depends on."""

from verirec.resuming.checkpoint import Checkpoint, long_job
from verirec.resuming.identity import checksum_of, job_key, told_by
from verirec.resuming.pieces import apart, kept, within

__all__ = ["Checkpoint", "apart", "checksum_of", "job_key", "kept", "long_job", "told_by", "within"]
