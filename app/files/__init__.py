"""Image files: reading, writing, and the sample pictures. Free of Qt.

The libraries that decode and encode are imported on first use, so that importing this
package costs nothing at start-up.
"""

from app.files.formats import Format
from app.files.reading import READABLE, read_image
from app.files.samples import SAMPLES, Sample
from app.files.writing import WRITABLE, write_image

__all__ = ["READABLE", "SAMPLES", "WRITABLE", "Format", "Sample", "read_image", "write_image"]
