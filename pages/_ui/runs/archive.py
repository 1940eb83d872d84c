"""Sources: the files of an upload, of a folder or of a zip archive, bounded before any is read."""

import contextlib
import io
import os
import re
import stat
import zipfile

from ..npz_member import BROKEN_ZIP
from .bounds import check_bound
from .records import RunFileError, Source

ZIP = b"PK\x03\x04"

# What lies beside a run and holds none of it: weights, states of the optimizer, tokenizers.
OTHER_FILES = re.compile(
    r"(^|/)(\.[^/]*|__MACOSX|wandb|tensorboard)(/|$)"
    r"|(^|/)(desktop\.ini|Thumbs\.db)$"
    r"|\.(safetensors|gguf|onnx|msgpack|h5|png|jpe?g|svg|pdf|md|txt|log|ya?ml|toml|py|sh|jinja)$"
    r"|(^|/)(pytorch_model.*|training_args|optimizer|scheduler|scaler|rng_state[^/]*)\.(bin|pth?)$"
    r"|(^|/)(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|vocab"
    r"|added_tokens|adapter_config|preprocessor_config|[^/]*\.index)\.json$"
    r"|(^|/)(merges\.txt|events\.out\.tfevents[^/]*|README[^/]*|LICENSE[^/]*)$",
    re.IGNORECASE,
)

# Suffixes of files that say something by being there, and are empty.
MARKERS = (".done", ".complete", ".success", ".lock", ".ready")


def sources_of_uploads(files):
    """The files that were uploaded, archives among them unpacked one by one when read.

    Parameters
    ----------
    files : sequence of (name, bytes)

    Returns
    -------
    tuple of Source

    Raises
    ------
    RunFileError
        More than `bounds.BOUNDS` allows, or a damaged archive.
    """
    sources = []
    for name, data in files:
        if _is_archive(data[:4], name, io.BytesIO(data)):
            sources += _members(name, io.BytesIO(data))
        else:
            sources.append(Source(name, len(data), _giving(data)))
    return _bounded(sources, "upload bytes", "The upload")


def sources_of_path(path):
    """The files of a folder and all folders in it, of a zip archive, or one file.

    Raises
    ------
    RunFileError
        Nothing is there, nothing may be read, or more than `bounds.BOUNDS` allows.
    """
    path = os.path.expanduser(path)
    name = os.path.basename(os.path.abspath(path))
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            os.listdir(path)
            return _bounded(_below(path, name), "path bytes", name)
        if not stat.S_ISREG(mode):
            raise RunFileError(f"{name} is neither a file nor a folder.")
        with open(path, "rb") as file:
            archive = _is_archive(file.read(4), name, file)
    except RunFileError:
        raise
    except FileNotFoundError:
        raise RunFileError(f"{path!r} does not exist. Check the spelling of the path.") from None
    except PermissionError:
        raise RunFileError(f"{path!r} may not be read. Ask for permission, or copy it.") from None
    except (OSError, ValueError):
        raise RunFileError(f"{path!r} is no path that can be opened.") from None
    sources = _members(name, path) if archive else [_file(path, name)]
    return _bounded(sources, "path bytes", name)


def in_order(name):
    """Sort key: numbers within a name count as numbers, so that 9 stands before 10."""
    parts = re.split(r"(\d+)", name)
    return [(int(part[-18:]), part) if at % 2 else (0, part) for at, part in enumerate(parts)]


def _is_archive(first, name, file):
    """Whether a file is a zip of files: arrays (npz) and PyTorch's files are zips of their own."""
    if first != ZIP:
        return False
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except BROKEN_ZIP:
        raise RunFileError(f"{name} is a damaged zip archive. Copy or pack it again.") from None
    arrays = bool(names) and all(member.endswith(".npy") for member in names)
    return not arrays and not any(member.endswith("data.pkl") for member in names)


def _members(name, file):
    """A source for each file of an archive.

    One in memory stays open. One on disk is opened for each file that is read, so that nothing
    is left to be closed when a run is let go of.
    """
    try:
        archive = zipfile.ZipFile(file)
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if isinstance(file, str):
            archive.close()
    except BROKEN_ZIP:
        raise RunFileError(f"{name} is a damaged zip archive. Copy or pack it again.") from None
    check_bound("members", len(entries), name)
    if any(entry.flag_bits & 1 for entry in entries):
        raise RunFileError(f"{name} is locked with a password. Pack it without one.")
    return [
        Source(entry.filename, entry.file_size, _unpacking(_opened(archive, file), entry, name))
        for entry in entries
    ]


def _opened(archive, file):
    """How an archive is come by when a file of it is read: a context for ``with``."""
    if isinstance(file, str):
        return lambda: zipfile.ZipFile(file)
    return lambda: contextlib.nullcontext(archive)


def _unpacking(get, entry, name):
    def read():
        try:
            with get() as archive, archive.open(entry) as file:
                data = file.read(entry.file_size + 1)  # never more than was promised
        except (*BROKEN_ZIP, NotImplementedError):
            data = None
        if data is None or len(data) != entry.file_size:
            raise RunFileError(f"{entry.filename} in {name} is damaged. Pack the archive again.")
        return data

    return read


def _below(path, name):
    """A source for each file below a folder."""
    sources, closed = [], []
    for folder, folders, names in os.walk(path, onerror=closed.append):
        folders[:] = [inner for inner in folders if not inner.startswith(".")]
        below = os.path.relpath(folder, path).replace(os.sep, "/")
        start = name if below == "." else f"{name}/{below}"
        for own in names:
            full = os.path.join(folder, own)
            if os.path.isfile(full):
                sources.append(_file(full, f"{start}/{own}"))
        check_bound("members", len(sources), name)
    for error in closed:
        sources.append(_file(error.filename, f"{name}/{os.path.relpath(error.filename, path)}"))
    return sources


def _file(path, name):
    def read():
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            raise RunFileError(f"{name} may not be read. Ask for permission.") from None

    try:
        size = os.stat(path).st_size
    except OSError:
        size = 0
    return Source(name, size, read, path)


def _giving(data):
    return lambda: data


def _bounded(sources, key, name):
    """The sources that can hold a part of a run, in order, unless they are too many or large."""
    kept = [source for source in sources if not _lies_beside(source)] or sources
    if not kept:
        raise RunFileError(f"{name} holds no file. Open the folder that the trainer wrote to.")
    check_bound("members", len(kept), name)
    check_bound(key, sum(source.size for source in kept), name)
    return tuple(sorted(kept, key=lambda source: in_order(source.name)))


def _lies_beside(source):
    """Whether a file holds no part of a run: company, or an empty marker such as STABLE."""
    if not source.size and source.suffix in ("", *MARKERS):
        return True
    return OTHER_FILES.search(source.name.replace("\\", "/")) is not None
