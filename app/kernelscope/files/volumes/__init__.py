"""Volume files: NIfTI, DICOM series, TIFF stacks, NumPy arrays, folders of pictures."""

from kernelscope.files.volumes.dicom import FORMAT as DICOM
from kernelscope.files.volumes.dicom import DicomSeries, is_dicom
from kernelscope.files.volumes.folder import DicomFiles, dicom_files
from kernelscope.files.volumes.reading import is_volume, read_volume, read_volumes, series_of
from kernelscope.files.volumes.volume_formats import (
    READABLE_VOLUMES,
    SEVERAL_VOLUMES,
    WRITABLE_VOLUMES,
)
from kernelscope.files.volumes.writing import (
    beside,
    check_write_volume,
    check_write_volumes,
    write_volume,
    write_volumes,
)

__all__ = [
    "DICOM",
    "READABLE_VOLUMES",
    "SEVERAL_VOLUMES",
    "WRITABLE_VOLUMES",
    "DicomFiles",
    "DicomSeries",
    "beside",
    "check_write_volume",
    "check_write_volumes",
    "dicom_files",
    "is_dicom",
    "is_volume",
    "read_volume",
    "read_volumes",
    "series_of",
    "write_volume",
    "write_volumes",
]
