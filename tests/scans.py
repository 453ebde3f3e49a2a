"""A real scan for tests: the MNI ICBM152 T1w template, one of the data files of nilearn."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def _template() -> Path:
    # Without importing nilearn, which takes seconds and warns.
    spec = find_spec("nilearn")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "datasets" / "data"
    return folder / "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"


MNI_T1 = _template()
