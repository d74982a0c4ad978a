"""A federation whose clients keep their data: sites and a server on NVIDIA FLARE, each a process on its own machine.

``project.py`` says what everybody agrees on, ``settings.py`` what a site alone decides, ``provision.py`` writes what
``nvflare provision`` makes certificates from, ``job.py`` what is submitted, ``submission.py`` submits it again until
the run is whole. ``seal.py`` tells the server from others, ``agreed.py`` checks what follows from the project, and
``refusals.py`` has all that a site says where something is wrong; ``identity.py`` signs the keys of secure sums.
``flare/`` holds the classes that FLARE itself starts; nothing else imports ``nvflare``, which the extra ``federation``
installs. ``docs/federation.md`` goes through it all with two hospitals, ``docs/security.md`` says who may lie, fail or
listen.

It imports everything but ``app`` and ``lab``. A check of what a site is asked goes into ``agreed.py``.
"""

from dualopt.federation.project import Project
from dualopt.federation.settings import SiteSettings

__all__ = ["Project", "SiteSettings"]
