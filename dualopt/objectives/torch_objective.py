"""Any module of PyTorch as an objective: the clients' losses over one flat vector of its parameters."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from zlib import crc32

from dualopt.arrays._extras import optional
from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.streams import generator
from dualopt.arrays.xp import Array, is_array, is_host, is_sparse, to_numpy
from dualopt.losses import Loss, Multinomial
from dualopt.objectives._torch_checks import check_module, require_outputs, require_precision, takes_channels_last
from dualopt.objectives._weights import as_client_weights, kind_of_weights
from dualopt.objectives.augmentation import AUGMENTATIONS
from dualopt.objectives.finite_sum import FiniteSum
from dualopt.objectives.network import class_number, require_ridge
from dualopt.objectives.rows import Block, ClientRows, Sample
from dualopt.problem.inputs import as_clients

__all__ = ["Parameter", "TorchModule", "torch_module"]

AUGMENTATION_STREAM = 7
SEEN_AT_ONCE = 2**6  # rows that are predicted at once: what few convolutions make of them stays in a cache

Augmentation = Callable[[Any, Any], Any]
"""Returns changed images ``(b, *input_shape)`` from images and a generator of NumPy."""


class Parameter(NamedTuple):
    """Where a parameter of a module is in the vector ``theta``: ``theta[start:stop]``, row by row."""

    name: str
    shape: tuple[int, ...]
    start: int

    @property
    def stop(self) -> int:
        """Where the next one begins."""
        return self.start + math.prod(self.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class TorchModule(FiniteSum):
    r"""Any ``torch.nn.Module`` of ``N`` clients, with a loss of its outputs and weight decay.

    .. math::
        f_j(\theta) = \sum_{i=1}^{m_j} w_{ji}\, \phi(\text{module}_\theta(x_{ji});\, y_{ji})
        + \tfrac{\text{ridge}}{2} |\theta|^2

    ``theta`` is one vector of the module's trainable parameters, one after the other and each row by row, in the order
    of ``module.named_parameters()``; ``layout`` says where each is. It has their type: all is computed in float32 where
    they are float32, and nothing is certified, for ``mu`` is ``-inf``. Use :func:`torch_module` to build one.

    The module is evaluated as after ``module.eval()``, by ``torch.func.functional_call``: it is never changed. On a CPU
    clients are computed one after the other, so that only one client's activations are in memory, and images lie in
    memory with their channels last, if the module takes them so; elsewhere clients of equally many rows are computed
    together by ``torch.func.vmap``.

    With ``augment`` the gradients of samples are those of changed rows. The seed of the changes is the client's own
    sample, its row numbers in their order: the same sample has the same changes at every point, in every process and
    after a resumed run, and another one has others (a client of one row has one sample of each size). ``value`` and
    ``gradient`` are of the rows as they are.

    Attributes
    ----------
    loss : Loss
        ``phi``; the module has its ``outputs``.
    ridge : float
        Weight decay of all trainable parameters.
    rows : ClientRows
        Features ``x_ji``, tensors, labels and weights ``w_ji``.
    module : torch.nn.Module
        A copy, on the device of the rows.
    input_shape : tuple of int
        The form in which the module takes a row.
    make : callable, optional
        Returns a new module, from whose parameters runs start; without it they start from those of ``module``.
    augment : callable, optional
        ``augment(images, rng)`` changes rows ``(b, *input_shape)``.
    vectorised : bool
        Whether clients are computed together.
    channels_last : bool
        Whether the module is given images whose channels lie side by side in memory, where convolutions are faster.
    precision : str
        "full", or "mixed": products and convolutions of the module in bfloat16, with its parameters, the loss, every
        gradient and all states in float32.
    weights : tuple of float, optional
        The weights ``w_j`` of the clients in ``E``; all are 1 when not given.
    """

    loss: Loss
    ridge: float
    rows: ClientRows
    module: Any
    input_shape: tuple[int, ...]
    make: Callable[[], Any] | None = None
    augment: Augmentation | None = None
    vectorised: bool = False
    channels_last: bool = False
    precision: str = "full"
    weights: tuple[float, ...] | None = None

    @cached_property
    def layout(self) -> tuple[Parameter, ...]:
        """The trainable parameters, in their order in ``theta``."""
        found: list[Parameter] = []
        for name, tensor in self.module.named_parameters():
            if tensor.requires_grad:
                found.append(Parameter(name, tuple(tensor.shape), found[-1].stop if found else 0))
        return tuple(found)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(p,)`` of ``theta``."""
        return (self.layout[-1].stop,)

    @property
    def mu(self) -> Array:
        """``-inf``: no lower bound of the curvature is known, shape ``(N,)``."""
        return -self.L

    @property
    def L(self) -> Array:
        """``inf``: no bound of the curvature is known, shape ``(N,)``."""
        return self.rows.like.new_full((self.n_clients,), math.inf)

    def initial(self, seed: int = 0) -> Array:
        """Return the parameters of a new module of ``make``, or those of ``module``, shape ``(p,)``.

        Parameters
        ----------
        seed : int, default 0
            Seed of PyTorch's generator while ``make`` runs, whose state is put back; without ``make`` nothing is drawn.
        """
        return self.vector(self.module if self.make is None else seeded(self.make, seed))

    def vector(self, module: Any) -> Array:
        """Return the trainable parameters of a module of the same form, a copy, shape ``(p,)``."""
        tensors, like = dict(module.named_parameters()), self.rows.like
        parts = [tensors[one.name].detach().to(like.device, like.dtype).reshape(-1) for one in self.layout]
        return _torch().cat(parts)

    def parameters(self, theta: Array) -> dict[str, Array]:
        """Return the parameters by name, views of one model ``theta`` of shape ``(p,)``."""
        parts = theta.split([one.stop - one.start for one in self.layout])  # whose backward pass is one copy
        return {one.name: part.reshape(one.shape) for one, part in zip(self.layout, parts, strict=True)}

    def module_at(self, theta: Array) -> Any:
        """Return a module of one's own with the parameters ``theta``, to be saved, exported or trained further."""
        found = copy.deepcopy(self.module)
        found.load_state_dict({name: part.clone() for name, part in self.parameters(theta).items()}, strict=False)
        return found

    def outputs(self, theta: Array, X: Array) -> Array:
        """Return what the module makes of rows ``(m, d)`` with one model, shape ``(k, m)``; some rows at a time."""
        torch = _torch()
        with torch.no_grad():
            return torch.cat([self._call(theta, part) for part in torch.split(X, SEEN_AT_ONCE)], dim=1)

    def predict(self, theta: Array, X: Array) -> Array:
        """Return the labels that one model gives to rows, shape ``(m,)``: classes, signs, or numbers.

        Parameters
        ----------
        theta : tensor, shape (p,)
            The model.
        X : tensor, shape (m, d)
            Features.
        """
        z = self.outputs(theta, X)
        if self.loss.labels == "class":
            return z.argmax(dim=0)
        return z[0] if self.loss.labels == "real" else 2 * (z[0] > 0).to(_torch().int64) - 1

    def sample_gradient(self, theta: Array, sample: Sample) -> Array:
        """Return the gradients estimated from a sample of rows, shape ``(N, p)``, as `FiniteSum` does, of changed rows.

        Raises
        ------
        ValueError
            If the sample is not one nonempty array of row numbers per client.
        """
        if self.augment is None:
            return super().sample_gradient(theta, sample)
        self.rows.check_sample(sample)
        rngs = [generator(0, (AUGMENTATION_STREAM, crc32(rows.astype("<i8").tobytes()))) for rows in sample]

        def one(block: Block, points: Array) -> tuple[Array]:
            own = [self._changed(X, rngs[j]) for j, X in zip(block.clients, block.X, strict=True)]
            return self._block_gradient(block._replace(X=_torch().stack(own)), points)

        return self._shaped(self.rows.sum(one, self._points(theta), sample, self._finish)[0])

    def _changed(self, X: Array, rng: Any) -> Array:
        assert self.augment is not None
        found = self.augment(X.reshape(-1, *self.input_shape), rng)
        if found.shape != (len(X), *self.input_shape) or found.dtype != X.dtype:
            kept = f"{X.dtype} of shape {(len(X), *self.input_shape)}"
            raise ValueError(f"augment must return {kept}, as it was given, not {found.dtype} of {tuple(found.shape)}.")
        return found.reshape(X.shape)

    def _points(self, theta: Array) -> Array:
        return self._stacked(theta)

    def _with_ridge(self, gradient: Array, points: Array) -> Array:
        return super()._with_ridge(gradient, points) if self.ridge else gradient

    def _call(self, theta: Array, X: Array) -> Array:
        """Return the outputs of rows ``(b, d)``, shape ``(k, b)``."""
        inputs = X.reshape(X.shape[0], *self.input_shape)
        if self.channels_last:
            inputs = inputs.contiguous(memory_format=_torch().channels_last)
        found = self._outputs(self.parameters(theta), inputs)
        return found.reshape(X.shape[0], -1).mT

    def _outputs(self, parameters: dict[str, Array], inputs: Array) -> Array:
        call = _torch().func.functional_call
        if self.precision == "full":
            return call(self.module, parameters, (inputs,))
        with _torch().autocast(inputs.device.type, dtype=_torch().bfloat16):
            found = call(self.module, parameters, (inputs,))
        return found.to(inputs.dtype)

    # A block of several clients is computed client by client, so that one of their graphs is there at a time.

    def _block_value(self, block: Block, points: Array) -> tuple[Array]:
        with _torch().no_grad():
            return self._each(super()._block_value, block, points)

    def _block_gradient(self, block: Block, points: Array) -> tuple[Array]:
        with _torch().enable_grad():
            return self._each(super()._block_gradient, block, points)

    def _block_value_and_gradient(self, block: Block, points: Array) -> tuple[Array, Array]:
        with _torch().enable_grad():
            return self._each(super()._block_value_and_gradient, block, points)

    def _each(self, function: Callable[[Block, Array], Any], block: Block, points: Array) -> Any:
        c, one_for_all = len(block.clients), points.shape[0] == 1
        if self.vectorised:
            return function(block, points.expand(c, -1))
        found = []
        for i in range(c):
            own = slice(i, i + 1)
            alone = Block(block.clients[own], block.X[own], block.y[own], block.w[own])
            found.append(function(alone, points if one_for_all else points[own]))
        return found[0] if c == 1 else tuple(_torch().cat(column) for column in zip(*found, strict=True))

    def _forward(self, points: Array, block: Block) -> tuple[Array, Any]:
        """Return outputs ``(c, k, b)``, and what takes derivatives with respect to them back to the parameters."""
        torch = _torch()
        if self.vectorised:
            together = torch.func.vmap(self._call)
            if not torch.is_grad_enabled():
                return together(points, block.X), None
            z, pull_back = torch.func.vjp(lambda theta: together(theta, block.X), points)
            return z, lambda slopes: pull_back(slopes)[0]
        if not torch.is_grad_enabled():
            return self._call(points[0], block.X[0])[None], None
        theta = points[0].detach().requires_grad_()
        z = self._call(theta, block.X[0])
        return z.detach()[None], lambda slopes: torch.autograd.grad(z, theta, slopes[0])[0][None]

    def _backward(self, points: Array, block: Block, way: Any, slopes: Array) -> Array:
        return way(slopes)


def torch_module(
    module: Any,
    X: Any,
    y: Any,
    *,
    loss: Loss | None = None,
    classes: int | None = None,
    clients: Any = 1,
    ridge: float = 0.0,
    input_shape: Sequence[int] | None = None,
    augment: str | Augmentation | None = None,
    frozen: bool = False,
    vectorised: bool | None = None,
    precision: str = "full",
    weights: Any = None,
    client_weights: Any = "equal",
    peers: Communicator = ALONE,
) -> TorchModule:
    """Build a :class:`TorchModule` from a module, rows and a partition.

    Parameters
    ----------
    module : torch.nn.Module, or callable without arguments that returns one
        What takes rows of the form ``input_shape`` and returns the outputs of the loss, ``(b, k)``. Of a callable, such
        as a class, runs start from new parameters, drawn with their seed; of a module from those that it has.
    X : array or tensor, shape (m, d)
        Features; they get the type of the parameters, and are where they are.
    y : array or tensor, shape (m,)
        Labels in the form that the loss expects: integers ``0, ..., classes - 1``, or -1 and 1, or numbers.
    loss : Loss, optional
        ``phi``; softmax cross-entropy, :class:`Multinomial`, when not given.
    classes : int, optional
        Number of classes of that; one more than the largest label when not given.
    clients : int, sequence of integer sequences or of masks, dict, or vector of shape (m,)
        As in :func:`dualopt.objectives.linear_model`; the names of clients are not kept.
    ridge : float, default 0
        Weight decay of all trainable parameters, at least 0.
    input_shape : sequence of int, optional
        The form of a row, such as ``(3, 32, 32)``; when not given, the attribute ``input_shape`` of the module, or else
        ``(d,)``.
    augment : "crop-flip" or callable, optional
        What changes the rows of samples, ``augment(images, rng)`` with a generator of NumPy.
    frozen : bool, default False
        Whether batch normalisation and dropout, which are refused otherwise, are as in ``module.eval()``: with the
        statistics that they have, and nothing left out.
    vectorised : bool, optional
        Whether clients are computed together by ``torch.func.vmap``; when not given, where ``X`` is not on the CPU.
    precision : "full" or "mixed", default "full"
        With "mixed" the products and convolutions of a module in float32 are computed in bfloat16 (PyTorch's
        ``autocast``), whose numbers have 8 binary digits, and are summed in float32; the parameters, the loss, the
        gradients and all states of methods stay in float32. Faster where the processor has such products.
    weights : array of shape (m,), optional
    client_weights : "equal", "rows" or numbers, default "equal"
        Both as in :func:`dualopt.objectives.linear_model`.
    peers : Communicator, optional
        The processes that hold the other clients; ``classes`` or ``loss`` must be given then.

    Raises
    ------
    ValueError
        If an argument does not fit, with one sentence that names it.
    ModuleNotFoundError
        If PyTorch is missing.
    """
    torch = _torch()
    make, module = (None, module) if isinstance(module, torch.nn.Module) else (module, seeded(module, 0))
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module must be a torch.nn.Module, or return one, not a {type(module).__name__}.")
    if is_sparse(X):
        raise ValueError("X must be dense for a module, which the option storage=dense of LIBSVM data makes it.")
    require_ridge(ridge)
    own = check_module(module, frozen)
    require_precision(precision, own)
    X = X if torch.is_tensor(X) else torch.as_tensor(to_numpy(X) if is_array(X) else X)
    X = X.detach().to(own)
    y = (
        y.detach().to(X.device)
        if torch.is_tensor(y)
        else torch.as_tensor(to_numpy(y) if is_array(y) else y).to(X.device)
    )
    loss = Multinomial(classes=class_number(y, classes, peers)) if loss is None else loss
    y = y if loss.labels == "class" else y.to(own)
    module = copy.deepcopy(module).to(X.device).eval()
    shape = tuple(map(int, input_shape or getattr(module, "input_shape", None) or X.shape[1:]))
    require_outputs(module, X, shape, loss.outputs)
    if isinstance(augment, str) and augment not in AUGMENTATIONS:
        raise ValueError(f"augment must be one of {', '.join(AUGMENTATIONS)}, or a function; not {augment!r}.")
    with peers.together():
        clients, _ = as_clients(clients, X.shape[0])
    sizes = [list(tensor.shape) for tensor in module.parameters()]
    agreed = {"loss": repr(loss), "ridge": float(ridge), "client_weights": kind_of_weights(client_weights)}
    agreed |= {"parameters of the module": repr(sizes), "number of columns of X": X.shape[1], "precision": precision}
    peers.agree(agreed)
    weights = weights if weights is None else torch.as_tensor(weights).to(X)
    rows = ClientRows.build(X, y, loss=loss, clients=clients, weights=weights, peers=peers)
    together = not is_host(rows.like) if vectorised is None else vectorised
    return TorchModule(
        loss=loss,
        ridge=float(ridge),
        rows=rows,
        module=module,
        input_shape=shape,
        make=make,
        augment=AUGMENTATIONS[augment] if isinstance(augment, str) else augment,
        vectorised=together,
        precision=precision,
        channels_last=is_host(rows.like) and not together and takes_channels_last(module, X, shape),
        weights=as_client_weights(client_weights, rows.sizes),
    )


def seeded(make: Callable[[], Any], seed: int) -> Any:
    """Return what a function makes with PyTorch's generator seeded, whose state is put back."""
    torch = _torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def _torch() -> Any:
    return optional("torch", "a module as an objective")
