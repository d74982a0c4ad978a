"""One grammar for whatever has a name: methods, solvers, stopping rules, losses, participations, problems and so on.

``NAME: parameter=value, ...`` names a class (as ``dualopt list`` does, or a plug-in, ``FILE.py:Name``) and parameters::

    fedsplit: step=0.1, solver=(lbfgs: history=5), stop=steps:3

``=`` may stand for the first colon. A value without a name is that of the first parameter which is no object itself. An
object among the values goes to the next comma, or is in parentheses; ``solver.history=5`` reaches into one that is
given or the default. ``[1, 0.5]`` is a tuple, ``none`` nothing, ``suggested`` leaves a parameter to the method, and
what holds one of ``()[]:=,`` is in quotes, as JSON has them. JSON and TOML say the same with one table for an object,
``{"fedsplit": {"step": 0.1}}``. Annotations of the fields say what a value must be, and nothing is ever evaluated.

It imports ``arrays``; the packages in which it looks names up are known to it by name. A new kind is a line of
``KINDS``.
"""

from dualopt.spec._grammar import pairs, toml
from dualopt.spec._kinds import KINDS, names
from dualopt.spec._spec import Spec, built, described, required, resolved, types_in

__all__ = ["KINDS", "Spec", "built", "described", "names", "pairs", "required", "resolved", "toml", "types_in"]
