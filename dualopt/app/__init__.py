"""What people meet: the command line and the estimators.

It may import everything else, and nothing imports it. A command is a file in ``cli``, an estimator one in
``estimators``.
"""
