"""Image files and recipes: reading, writing, and the sample pictures. Free of Qt.

The libraries that decode and encode are imported on first use, so that importing this
package costs nothing at start-up.
"""

from kernelscope.files.formats import Format
from kernelscope.files.picture_formats import READABLE, WRITABLE
from kernelscope.files.reading import is_one_of_several, read_image, read_pages
from kernelscope.files.recipes import RECIPE_SUFFIX, read_recipe, write_recipe
from kernelscope.files.samples import SAMPLES, Sample
from kernelscope.files.writing import (
    check_write,
    check_write_pages,
    encoded,
    holds_pages,
    write_image,
    write_pages,
)

__all__ = [
    "READABLE",
    "RECIPE_SUFFIX",
    "SAMPLES",
    "WRITABLE",
    "Format",
    "Sample",
    "check_write",
    "check_write_pages",
    "encoded",
    "holds_pages",
    "is_one_of_several",
    "read_image",
    "read_pages",
    "read_recipe",
    "write_image",
    "write_pages",
    "write_recipe",
]
