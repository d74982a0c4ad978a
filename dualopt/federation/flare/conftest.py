"""Without the extra ``federation`` there is nothing to collect here."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("nvflare") else ["*.py"]
