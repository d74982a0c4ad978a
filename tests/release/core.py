"""What runs without any extra: a federated model from arrays to predictions, with its certificate.

It is run by the Python of an environment that has the package, outside of the repository.
"""

import importlib.util
import tempfile

import numpy as np

from dualopt import DualFL, Logistic, Model, inference, linear_model, load_model, newton, recommend, run


def main() -> None:
    """Train, certify, save, load and predict."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    y = np.where(X @ np.arange(5.0) + rng.standard_normal(200) > 0, "sick", "well")
    f = linear_model(X, y, loss=Logistic(), mu=1e-2, clients=4)
    trace = run(DualFL(), f, rounds=300, tol=1e-8)
    assert trace.status == "converged", trace
    error = trace["energy"][-1] - newton(f).energy
    assert error <= trace["certificate"][-1], (error, trace["certificate"][-1])
    with tempfile.TemporaryDirectory() as folder:
        Model.of(f, trace).save(folder)
        model = load_model(folder)
    assert set(model.predict(X)) == {"sick", "well"}
    assert (model.predict(X) == y).mean() > 0.85
    assert recommend(f).algorithm is not None
    assert (inference(f, trace.theta).deviance or 0.0) > 0.0
    for name in ("theory", "figures", "tests"):
        assert importlib.util.find_spec(name) is None, f"{name} is a module at the top level"
    print("certified", trace["certificate"][-1])


if __name__ == "__main__":
    main()
