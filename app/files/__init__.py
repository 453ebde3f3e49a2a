"""Image files and recipes: reading, writing, and the sample pictures. Free of Qt.

The libraries that decode and encode are imported on first use, so that importing this
package costs nothing at start-up.
"""

from app.files.formats import Format
from app.files.reading import READABLE, read_image
from app.files.recipes import RECIPE_SUFFIX, read_recipe, write_recipe
from app.files.samples import SAMPLES, Sample
from app.files.writing import WRITABLE, check_write, unkept, write_image

__all__ = [
    "READABLE",
    "RECIPE_SUFFIX",
    "SAMPLES",
    "WRITABLE",
    "Format",
    "Sample",
    "check_write",
    "read_image",
    "read_recipe",
    "unkept",
    "write_image",
    "write_recipe",
]
