import dataclasses
import gc
import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from verirec import load_dataset
from verirec.data.datasets import CATALOGUE, fetch_dataset
from verirec.exceptions import DownloadError, IncompleteDatasetWarning

# pooch leaves the connection to the collector when the server answers with an error.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

RATINGS = b"1\t1\t5\t10\n2\t1\t1\t11\n"


def zip_of(files, compression=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


GOOD = zip_of({"ml-100k/README": b"read me", "ml-100k/u.data": RATINGS})
STORED = zip_of({"u.data": RATINGS}, zipfile.ZIP_STORED)
LARGE = zip_of({"u.data": bytes(range(256)) * 40})


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        content = self.server.pages.get(self.path)
        self.send_response(200 if content is not None else 404)
        # A page that is cut announces more than it sends.
        self.send_header("Content-Length", str(len(content or b"") + (1000 if self.path.startswith("/cut") else 0)))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_):
        """Keep quiet."""


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.pages = {}
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()
        gc.collect()


@pytest.fixture
def info(server):
    """Give the catalogue's entry of a data set whose archive is what the test says."""

    def entry(content, *, path="/archive.zip", checksum=None):
        server.pages[path] = content
        known = CATALOGUE["movielens-100k"]
        return dataclasses.replace(
            known,
            download=dataclasses.replace(
                known.download,
                url=f"http://127.0.0.1:{server.server_port}{path}",
                checksum=checksum or f"md5:{hashlib.md5(content or b'').hexdigest()}",
            ),
        )

    return entry


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_fetching_leaves_exactly_the_files_that_are_read(tmp_path, info):
    folder = fetch_dataset(info(GOOD), tmp_path / "home")
    assert folder == tmp_path / "home" / "ml-100k"
    assert tree(tmp_path) == {"home": None, "home/ml-100k": None, "home/ml-100k/u.data": RATINGS}


def test_what_was_fetched_can_be_loaded(tmp_path, info, monkeypatch):
    monkeypatch.setitem(CATALOGUE, "movielens-100k", info(GOOD))
    for _ in range(2):
        with pytest.warns(IncompleteDatasetWarning):
            data = load_dataset("movielens-100k", data_home=tmp_path, download=True)
        assert data.train.ratings.tolist() == [5, 1]


def test_fetching_again_replaces_the_files_and_keeps_others(tmp_path, info):
    (tmp_path / "ml-100k").mkdir()
    (tmp_path / "ml-100k" / "u.data").write_text("old")
    (tmp_path / "ml-100k" / "mine.txt").write_text("mine")
    fetch_dataset(info(GOOD), tmp_path)
    assert tree(tmp_path) == {"ml-100k": None, "ml-100k/u.data": RATINGS, "ml-100k/mine.txt": b"mine"}


FAILURES = {
    "wrong checksum": (
        {"content": GOOD, "checksum": "md5:" + "0" * 32},
        r"^the checksum of http://127\.0\.0\.1:\d+/archive\.zip does not match md5:0{32}; nothing was kept$",
    ),
    "not found": (
        {"content": None, "path": "/gone.zip"},
        r"^cannot download http://127\.0\.0\.1:\d+/gone\.zip \(HTTPError\); download and unpack it by hand$",
    ),
    "cut short": ({"content": GOOD, "path": "/cut.zip"}, r"^cannot download http://127\.0\.0\.1:\d+/cut\.zip \("),
    "no file in it": ({"content": zip_of({"other": b"x"})}, r"^the archive has no u\.data; nothing was kept$"),
    "not an archive": ({"content": b"hello"}, r"^the archive is not a readable zip; nothing was kept$"),
    "rotten content": ({"content": STORED.replace(RATINGS, RATINGS[::-1])}, r"nothing was kept$"),
}


@pytest.mark.parametrize("existing", [{}, {"u.data": "old", "mine.txt": "mine"}], ids=["nothing there", "files there"])
@pytest.mark.parametrize(("archive", "message"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failed_fetch_is_one_line_and_changes_nothing(tmp_path, info, archive, message, existing):
    if existing:
        (tmp_path / "ml-100k").mkdir()
        for name, text in existing.items():
            (tmp_path / "ml-100k" / name).write_text(text)
    before = tree(tmp_path)
    entry = info(**archive)
    with pytest.raises(DownloadError, match=message) as caught:
        fetch_dataset(entry, tmp_path)
    assert "\n" not in str(caught.value)
    assert tree(tmp_path) == before


def test_a_rotten_archive_with_the_right_checksum_changes_nothing(tmp_path, info):
    entry = info(LARGE[:60] + b"\xff" * 40 + LARGE[100:])
    with pytest.raises(DownloadError, match=r"nothing was kept$"):
        fetch_dataset(entry, tmp_path)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/archive.zip", "gopher://127.0.0.1/archive.zip", "archive.zip"])
def test_an_address_that_does_not_answer_is_named(tmp_path, info, url):
    entry = info(GOOD)
    entry = dataclasses.replace(entry, download=dataclasses.replace(entry.download, url=url))
    with pytest.raises(DownloadError, match=rf"^cannot download {url}(: | \()") as caught:
        fetch_dataset(entry, tmp_path)
    assert "\n" not in str(caught.value)
    assert tree(tmp_path) == {}


def test_a_failed_fetch_does_not_leave_a_new_data_folder(tmp_path, info):
    with pytest.raises(DownloadError):
        fetch_dataset(info(None, path="/gone.zip"), tmp_path / "new" / "home")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("blocked", ["home", "home/ml-100k"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path, info, blocked):
    (tmp_path / blocked).parent.mkdir(exist_ok=True)
    (tmp_path / blocked).write_text("in the way")
    before = tree(tmp_path)
    with pytest.raises(DownloadError, match=r"^cannot write to '.*home': ") as caught:
        fetch_dataset(info(GOOD), tmp_path / "home")
    assert "\n" not in str(caught.value)
    assert tree(tmp_path) == before


def test_a_data_set_without_an_address_is_not_fetched(tmp_path):
    with pytest.raises(DownloadError, match=r"^coat cannot be fetched for you; download it from its makers"):
        fetch_dataset(CATALOGUE["coat"], tmp_path / "home")
    assert tree(tmp_path) == {}
