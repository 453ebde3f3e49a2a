"""Volume files: NIfTI, DICOM series, TIFF stacks, NumPy arrays, folders of pictures."""

from kernelscope.files.volumes.reading import is_volume, read_volume, series_of
from kernelscope.files.volumes.volume_formats import READABLE_VOLUMES, WRITABLE_VOLUMES
from kernelscope.files.volumes.writing import (
    beside,
    check_write_volume,
    check_write_volumes,
    write_volume,
    write_volumes,
)

__all__ = [
    "READABLE_VOLUMES",
    "WRITABLE_VOLUMES",
    "beside",
    "check_write_volume",
    "check_write_volumes",
    "is_volume",
    "read_volume",
    "series_of",
    "write_volume",
    "write_volumes",
]
