"""The app's own server, started for a test on a free port of this machine and ended after it."""

import contextlib
import http.client
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
STOP_SECONDS = 10
# Of the configured options only these differ from a visitor's server.
OPTIONS = ["--server.headless=true", "--server.address=127.0.0.1", "--server.fileWatcherType=none"]


class Server:
    """A running ``streamlit run app.py``.

    Attributes
    ----------
    url : str
        Address of the start page, without a slash at the end.
    """

    def __init__(self, log, root=ROOT, arguments=()):
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._log = Path(log)
        command = [sys.executable, "-m", "streamlit", "run", "app.py"]
        options = [*OPTIONS, f"--server.port={self._port}"]
        with self._log.open("w") as output:
            self._process = subprocess.Popen(
                [*command, *options, "--", *arguments],
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise

    def log(self, lines=40):
        """The last lines that the server wrote; the page itself shows no error details."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self):
        """End the server."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_until_healthy(self):
        last = time.monotonic() + START_SECONDS
        while time.monotonic() < last:
            if self._process.poll() is not None:
                raise RuntimeError(f"The server ended before it served a page.\n{self.log()}")
            if _is_healthy(self._port):
                return
            time.sleep(0.1)
        raise RuntimeError(f"No answer from the server in {START_SECONDS} s.\n{self.log()}")


@contextlib.contextmanager
def running(log, root=ROOT, arguments=()):
    """Start a server, hand it out, end it."""
    server = Server(log, root, arguments)
    try:
        yield server
    finally:
        server.stop()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _is_healthy(port):
    # Not urllib: a proxy named in the environment would be asked for this machine's own address.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
