"""Random changes of images, which keep their labels: what training draws anew in every step."""

from __future__ import annotations

from typing import Any

from dualopt.arrays.xp import Array, indices

__all__ = ["AUGMENTATIONS", "crop_flip"]

PADDING = 4


def crop_flip(images: Array, rng: Any, moved: float = 1.0) -> Array:
    """Move an image by up to 4 pixels each way, zeros coming in, and mirror it left to right in half of the cases.

    The changes that are usual for CIFAR (He et al. 2016, "Deep residual learning for image recognition", Section 4.2).

    Parameters
    ----------
    images : tensor, shape (b, channels, height, width)
        They are not written to.
    rng : numpy.random.Generator
        All that is random.
    moved : float, default 1
        How probable it is that an image is moved; it is mirrored independently of that.

    Returns
    -------
    tensor, shape (b, channels, height, width)

    Raises
    ------
    ValueError
        If there are no images of this form.
    """
    import torch  # pyright: ignore[reportMissingImports]

    if images.ndim != 4:
        raise ValueError(
            "augment crop-flip needs images of shape (channels, height, width): give input_shape, such as (3, 32, 32)."
        )
    b, _, height, width = images.shape
    down, right = rng.integers(0, 2 * PADDING + 1, size=(2, b, 1))
    mirrored = rng.integers(0, 2, size=(b, 1))
    if moved < 1.0:
        stays = rng.random((b, 1)) >= moved
        down[stays] = right[stays] = PADDING
    lines, columns = indices(range(height)), indices(range(width))
    columns = mirrored * (width - 1 - columns) + (1 - mirrored) * columns
    padded = torch.nn.functional.pad(images, (PADDING,) * 4)
    places = [torch.as_tensor(x, device=images.device) for x in (down + lines, right + columns)]
    own = torch.arange(b, device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[own, places[0][:, :, None], places[1][:, None, :]].permute(0, 3, 1, 2)


AUGMENTATIONS = {"crop-flip": crop_flip}
"""Augmentations by name."""
