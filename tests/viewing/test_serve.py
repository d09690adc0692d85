"""The server of the pages of a folder."""

import http.client
import json
import re
import socket
import threading
import time

import pytest

import sabir
from sabir.viewing import ModelServer
from support.markup import parsed

TEXT = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Relu (x) }'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    outer = tmp_path_factory.mktemp("outer")
    (outer / "secret.onnxtxt").write_text(TEXT)
    inner = outer / "models"
    (inner / "more").mkdir(parents=True)
    (inner / "one.onnxtxt").write_text(TEXT)
    (inner / "more" / "two & 3.onnxtxt").write_text(TEXT)
    (inner / "broken.onnxtxt").write_text("nothing of a model")
    (inner / "notes.md").write_text("no model")
    (inner / ".hidden.onnxtxt").write_text(TEXT)
    (inner / "link.onnxtxt").symlink_to(outer / "secret.onnxtxt")
    return inner


@pytest.fixture(scope="module")
def server(folder):
    with ModelServer(folder) as found:
        thread = threading.Thread(target=found.run)
        thread.start()
        yield found
        found.close()
        thread.join()


@pytest.fixture
def ask(server):
    """Request a target, and return the response with its text."""

    def request(target, host=None, method="GET"):
        address = server.address.removeprefix("http://").rstrip("/")
        connection = http.client.HTTPConnection(address, timeout=20)
        connection.putrequest(method, target, skip_host=True)
        connection.putheader("Host", address if host is None else host)
        connection.endheaders()
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response, text

    return request


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_models_of_the_folder_are_listed(ask):
    response, text = ask("/")
    assert response.status == 200
    names = {row["name"]: row["address"] for row in data_of(text)["list"]}
    assert names == {
        "broken.onnxtxt": "/model?name=broken.onnxtxt",
        "more/two & 3.onnxtxt": "/model?name=more%2Ftwo+%26+3.onnxtxt",
        "one.onnxtxt": "/model?name=one.onnxtxt",
    }


def test_the_page_of_a_model(ask):
    for target in ("/model?name=one.onnxtxt", "/model?name=more%2Ftwo+%26+3.onnxtxt"):
        response, text = ask(target)
        assert response.status == 200
        assert data_of(text)["reload"] is True
        assert "connect-src &#x27;self&#x27;" in text


def test_headers_keep_other_sites_out(ask):
    response, _ = ask("/")
    headers = dict(response.getheaders())
    assert headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1", "127.0.0.1:1"])
def test_another_host_is_refused(ask, host):
    response, text = ask("/", host=host)
    assert response.status == 421
    assert text == f"this server is not {host!r}"


def test_localhost_is_this_machine(ask, server):
    port = server.address.rstrip("/").rpartition(":")[2]
    assert ask("/", host=f"localhost:{port}")[0].status == 200


@pytest.mark.parametrize(
    "name",
    [
        "../secret.onnxtxt", "..%2Fsecret.onnxtxt", "link.onnxtxt", "/etc/passwd", "notes.md", "", ".", "more",
        "missing.onnxtxt", "one.onnxtxt%00", "more/../../secret.onnxtxt",
    ],
)  # fmt: skip
def test_what_is_not_a_model_of_the_folder_is_refused(ask, name):
    response, text = ask(f"/model?name={name}")
    assert response.status == 404
    assert "in this folder" in text
    assert "<" not in text


def test_a_file_that_is_no_model(ask):
    response, text = ask("/model?name=broken.onnxtxt")
    assert response.status == 422
    assert response.getheader("Content-Type") == "text/plain; charset=utf-8"
    assert "broken.onnxtxt" in text


def test_a_picture(ask):
    response, text = ask("/picture.svg?model=one.onnxtxt")
    assert response.getheader("Content-Type") == "image/svg+xml; charset=utf-8"
    root = parsed(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "Relu" in [element.text for element in root.iter()]
    assert ask("/picture.svg?model=one.onnxtxt&node=y&steps=0")[0].status == 200


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("model=one.onnxtxt&node=z", 404, "the model has no node 'z', nor one with a result of this name"),
        ("model=one.onnxtxt&node=y&steps=many", 422, "steps='many': write a number from 0 to 9"),
        ("model=..%2Fsecret.onnxtxt", 404, "there is no model '../secret.onnxtxt' in this folder"),
        ("", 404, "there is no model '' in this folder"),
    ],
)
def test_no_picture(ask, query, status, message):
    response, text = ask(f"/picture.svg?{query}")
    assert (response.status, text) == (status, message)


def test_another_page(ask):
    response, text = ask("/favicon.ico")
    assert (response.status, text) == (404, "there is no page '/favicon.ico'")


def test_only_pages_can_be_requested(ask):
    assert ask("/", method="POST")[0].status == 501


def test_a_stamp_changes_with_the_file(ask, folder):
    path = folder / "changing.onnxtxt"
    path.write_text(TEXT)
    _, first = ask("/model?name=changing.onnxtxt&stamp=")
    _, listed = ask("/?stamp=")
    assert ask("/model?name=changing.onnxtxt&stamp=")[1] == first
    _, page = ask("/model?name=changing.onnxtxt")
    time.sleep(0.01)
    path.write_text(TEXT.replace("Relu", "Neg"))
    assert ask("/model?name=changing.onnxtxt&stamp=")[1] != first
    assert ask("/?stamp=")[1] != listed
    _, changed = ask("/model?name=changing.onnxtxt")
    operators = [data_of(text)["operators"][0]["name"] for text in (page, changed)]
    assert operators == ["Relu", "Neg"]
    path.unlink()


def test_no_folder(folder):
    with pytest.raises(sabir.FileError, match="this is no folder; `sabir view MODEL` writes the page of one"):
        ModelServer(folder / "one.onnxtxt")


def test_a_port_that_is_taken(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            sabir.FileError, match=rf"port {port}: .*; choose another one, or 0 for a free one"
        ):
            ModelServer(folder, port)
