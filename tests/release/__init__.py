"""What is released: wheel and source distribution, and what they do in fresh environments.

``python -m tests.release`` builds both from a copy of what git has committed, looks at what is in them, and installs
the wheel into environments of their own: with nothing else, with each extra alone, with what the README asks for, and
with the lowest versions of what it needs; the source distribution with nothing else. In each it runs what must run
there (``jobs.py``, ``core.py``), and what must be refused in one sentence that names the extra (``refusals.py``). It
needs ``uv`` (``pip install uv``) and an index of packages.
"""
