"""A real S3 server on this machine: S3Proxy, fetched once by the Ivy that pyspark brings along.

Nothing but Python and Java is needed. Run as a program (``make s3``) it serves until it is interrupted, prints how
to reach it, and keeps its objects in a folder, a temporary one if none is named::

    python tests/support/s3server.py [FOLDER]
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyarrow.fs as pafs

IDENTITY = "testkey"
SECRET = "a-secret-that-nobody-may-print"
REGION = "us-east-1"

# All that S3Proxy loads to serve a folder; the clouds that it could stand before are left out.
JARS = {
    "org.gaul:s3proxy:4.0.0": "a8f69241a0421d3739c72f3c49e3f25832176d586f9b23e97eec6a2e5fe2f953",
    "tools.jackson.core:jackson-databind:3.2.1": "8d005c5626b1839e2eea6bd33a437287e7a24d54e1bb3746b8f861193262b519",
    "tools.jackson.core:jackson-core:3.2.1": "2688aaa60b207403287e16a71fb5644bf2f9cfc464cc601ae95c6c86a5af1f94",
    "tools.jackson.dataformat:jackson-dataformat-xml:3.2.1": "70a5b176d1c4be17aac0cb8d42aa23a5866b5ee95b101535003edad36ad66c4a",
    "com.fasterxml.jackson.core:jackson-annotations:2.22": "21ddb598807d3a51a876704eb979d9296e1c6a6f47ab1826ff88c6d6a127a2d0",
    "com.fasterxml.woodstox:woodstox-core:7.2.1": "95d5a916ab82aca0a8c4ca8a2cf7e4fd7eab18817c24f1fdc7738e15d2a58845",
    "org.codehaus.woodstox:stax2-api:4.3.0": "7c805f36129ea9fa42b696093b7ae1eb20bb6ccec65c8280d6f33db5609ca5e1",
    "com.google.guava:guava:33.6.0-jre": "dc573e1fca4fd5454f4a5fd3d7da2df03002876a4175bafc14a95980dd7713b3",
    "com.google.guava:failureaccess:1.0.3": "cbfc3906b19b8f55dd7cfd6dfe0aa4532e834250d7f080bd8d211a3e246b59cb",
    "args4j:args4j:2.37": "5a13b0f7ff519183e55b8f453b8faaa23b92ccf0443f1fac515fedf2246bdc18",
    "jakarta.servlet:jakarta.servlet-api:6.0.0": "c034eb1afb158987dbb53a5fea0cadf611c8dae8daadd59c44d9d5ab70129cef",
    "org.slf4j:slf4j-api:2.0.18": "44508fd1576500688c790b190acdd16fec4f8c79a3e0b900afd70503cf055f55",
}
"""Maven coordinates and the SHA-256 of the jars."""


def fetch() -> list[Path]:
    """Return the jars, fetched once from Maven Central or where DEFAULT_ARTIFACT_REPOSITORY says."""
    cache = Path(os.environ.get("TENSORLAKE_CACHE", Path.home() / ".cache" / "tensorlake-spark"))
    folder = cache / "s3proxy"
    jars = [folder / "{1}-{2}.jar".format(*name.split(":")) for name in JARS]
    if not all(jar.exists() for jar in jars):
        _resolve(folder)
    for jar, digest in zip(jars, JARS.values(), strict=True):
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        if found != digest:
            jar.unlink()  # so that the next run fetches it anew
            raise RuntimeError(f"{jar} has the SHA-256 {found}; expected was {digest}")
    return jars


def _resolve(folder: Path) -> None:
    """Let Ivy fetch the jars, and put them into a folder when they are whole."""
    import pyspark

    (ivy,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        work = Path(name)
        (work / "settings.xml").write_text(_settings(work))
        (work / "ivy.xml").write_text(_wanted())
        done = subprocess.run(
            [java(), "-jar", ivy, "-settings", work / "settings.xml", "-ivy", work / "ivy.xml",
             "-retrieve", f"{work}/[artifact]-[revision].[ext]"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(
                "S3Proxy could not be fetched; where Maven Central is not reached, set the environment "
                "variable DEFAULT_ARTIFACT_REPOSITORY to a mirror of it. Ivy said:\n"
                f"{(done.stdout + done.stderr)[-2000:]}"
            )
        for jar in work.glob("*.jar"):
            jar.replace(folder / jar.name)  # at once: another process may be looking


def _settings(work: Path) -> str:
    mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    root = f"root={quoteattr(mirror)}" if mirror else ""
    return (
        '<ivysettings><settings defaultResolver="central"/>'
        f"<caches defaultCacheDir={quoteattr(str(work / 'cache'))}/><resolvers>"
        f'<ibiblio name="central" m2compatible="true" usepoms="false" {root}/>'
        "</resolvers></ivysettings>"
    )


def _wanted() -> str:
    dependencies = "".join(
        '<dependency org="{}" name="{}" rev="{}" transitive="false"/>'.format(*name.split(":"))
        for name in JARS
    )
    return (
        '<ivy-module version="2.0"><info organisation="tensorlake" module="s3server"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def java() -> str:
    """Return the command that Spark would start too."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not found:
        raise RuntimeError("no java on the PATH; install a JDK 17 or 21, or set JAVA_HOME")
    return found


class S3Server:
    """S3Proxy on a free port of this machine, its objects in a folder; a context manager.

    Parameters
    ----------
    folder : Path
        Where buckets and the server's log lie.

    Attributes
    ----------
    endpoint : str
        Its URL.
    options : dict of str to str
        What ``tl.open(..., storage_options=)`` needs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.options = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": IDENTITY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> S3Server:
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        conf, log = self.folder / "s3proxy.conf", self.folder / "s3proxy.log"
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": IDENTITY,
            "s3proxy.credential": SECRET,
            "s3proxy.ignore-unknown-headers": "true",
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": data,
        }
        conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        classes = os.pathsep.join(map(str, fetch()))
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [java(), "-Xmx512m", "-cp", classes, "org.gaul.s3proxy.Main", "--properties", conf],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        for _ in range(300):
            if self._process.poll() is None and self._is_ready():
                return self
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        self.__exit__()
        raise RuntimeError(f"S3Proxy did not start on port {self.port}:\n{log.read_text()[-2000:]}")

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _is_ready(self) -> bool:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as client:
                client.request("GET", "/healthz")
                return client.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def filesystem(self) -> pafs.S3FileSystem:
        """Return a client of its own, to look behind the lake's back."""
        return pafs.S3FileSystem(
            access_key=IDENTITY,
            secret_key=SECRET,
            region=REGION,
            scheme="http",
            endpoint_override=f"127.0.0.1:{self.port}",
            allow_bucket_creation=True,
        )

    def make_bucket(self, name: str) -> str:
        """Make a bucket (three letters or more) and return its URL."""
        self.filesystem().create_dir(name)
        return f"s3://{name}"


def _serve(folder: Path) -> None:
    """Serve until interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    with suppress(KeyboardInterrupt), S3Server(folder) as server:
        bucket = server.make_bucket("bucket")
        print(f"An S3 server at {server.endpoint}, its objects in {folder}; Ctrl-C ends it.\n")
        print("In a shell:\n")
        for name, value in server.options.items():
            print(f"    export {name}={value}")
        print("\nIn Python:\n")
        print(f'    lake = tl.open("{bucket}/lake", storage_options={server.options})')
        print(
            f'    spark = local_session(s3={server.options})  # format("tensor"), and s3a:// for Spark itself'
        )
        print(
            "\nJobs and the command line take the environment, or each as --storage-option NAME=VALUE.",
            flush=True,
        )
        signal.pause()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _serve(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="tensorlake-s3-") as name:
            _serve(Path(name))
