"""Trained models that leave the house: saved, loaded elsewhere, and used on rows that come later.

A :class:`Model` is what predicts: coefficients, the scaling of the features, their names, the classes and the loss,
with the certificate of the run that it is from. ``_training.py`` makes one of a run, ``_file.py`` has its two files,
``_description.py`` what is in them, ``_schema.py`` what rows must be, ``_sklearn.py`` the same model as a pipeline of
scikit-learn, ``_new_rows.py`` the rows of a file.
"""

from __future__ import annotations

from dualopt.problem.models._model import Model
from dualopt.problem.models._schema import Schema

__all__ = ["Model", "Schema", "load_model"]

load_model = Model.load
"""The same as :meth:`Model.load`."""
