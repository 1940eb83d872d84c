"""One array of an npz file, read only if its header tells the truth and it holds no object."""

import io
import struct
import zipfile
import zlib

import numpy as np

# What a damaged archive raises. RuntimeError: a password, or an unknown compression.
BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    OSError,
    EOFError,
    RuntimeError,
)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class BadMember(ValueError):
    """An array that is damaged or of a kind that is not wanted; ``kind`` is NumPy's letter."""

    def __init__(self, kind=""):
        super().__init__(kind)
        self.kind = kind


def read_member(archive, entry, kinds, most_axes=3):
    """The array in one member of an npz file.

    The size of the member once unpacked has to be bounded before; no more is unpacked.

    Parameters
    ----------
    archive : zipfile.ZipFile
    entry : zipfile.ZipInfo
    kinds : str
        Letters of NumPy's kinds that are wanted, such as ``'fiub'`` or ``'U'``.
    most_axes : int

    Raises
    ------
    BadMember
        Objects (pickles), another kind, or a header that disagrees with the size.
    zipfile.BadZipFile
        An unusual compression.
    """
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile
    data = archive.read(entry)
    stream, kind = io.BytesIO(data), ""
    try:
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
        size = dtype.itemsize
        for length in shape:
            size *= length
        kind = dtype.kind
        if kind not in kinds or len(shape) > most_axes or size != len(data) - stream.tell():
            raise ValueError
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)
    except Exception:  # NumPy reads headers with Python's tokenizer, which may raise anything
        raise BadMember(kind) from None
