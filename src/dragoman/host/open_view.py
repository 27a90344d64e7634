"""Which view of the roots to work in."""

from collections.abc import Sequence

from dragoman.host.copy_view import CopyView
from dragoman.host.overlay_view import OverlayView
from dragoman.host.view import View, ViewRefused


def open_view(roots: Sequence[str], *, folder: str) -> View:
    """Return a copy if the roots are small enough, else a layer above them.

    `ViewRefused` with both reasons if neither works.

    `folder` is a private place outside of the roots. Blocks, for as long as copying takes.
    """
    try:
        return CopyView.open(roots, folder=folder)
    except ViewRefused as no_copy:
        try:
            return OverlayView.open(roots, folder=folder)
        except ViewRefused as no_layer:
            raise ViewRefused(f"{no_copy} {no_layer}") from no_layer
