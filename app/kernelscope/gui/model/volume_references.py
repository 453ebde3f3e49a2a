"""The references of volumes that are opened, which those that are open may be meant for too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelscope.gui.model.history import Reference, ReferenceOrigin
from kernelscope.images.volume import Volume

References = Mapping[Volume, Reference[Volume]]


def references_of(
    volumes: Sequence[Volume],
    truth: Sequence[Volume],
    known: References,
    shown: Reference[Volume] | None,
) -> dict[Volume, Reference[Volume]]:
    """Return the references of `volumes`.

    `truth`: the noise-free original of each, where it is known. `known`: references of the volumes
    that are open. `shown`: that of the volume on the screen: one that was chosen is kept for a
    volume of its size.
    """
    if truth:
        truths = (Reference(volume, ReferenceOrigin.TRUTH) for volume in truth)
        return dict(zip(volumes, truths, strict=True))
    references = {volume: known[volume] for volume in volumes if volume in known}
    if (
        shown
        and shown.origin in (ReferenceOrigin.CHOSEN, ReferenceOrigin.KEPT)
        and len(volumes) == 1
    ):
        (volume,) = volumes
        if volume.voxels.shape == shown.image.voxels.shape:
            references.setdefault(volume, Reference(shown.image, ReferenceOrigin.KEPT))
    return references
