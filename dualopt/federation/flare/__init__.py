"""The classes that NVIDIA FLARE starts, and the session that submits jobs: all that imports ``nvflare``."""
