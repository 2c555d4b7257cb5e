"""Video files: refused by name without the extra, a few frames with it."""

import sys
from types import SimpleNamespace

import pytest
from PIL import Image

from k3.data import media, video
from k3.errors import RequestError


@pytest.mark.parametrize("name", ["clip.mp4", "CLIP.MOV", "a/b.webm", "x.tar.mkv"])
def test_video_files_are_known_by_their_ending(name):
    assert video.is_video(name)


@pytest.mark.parametrize("source", ["a.png", "mp4", b"clip.mp4", "clip.mp4.jpg"])
def test_other_sources_are_not_video(source):
    assert not video.is_video(source)


def test_without_the_extra_a_video_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(
        RequestError, match=r"for holiday\.mp4: pip install 'k3\[video\]'"
    ):
        media.preprocess("somewhere/holiday.mp4")


@pytest.mark.parametrize(
    ("total", "count", "places"),
    [
        (0, 4, []),
        (1, 4, [0]),
        (4, 4, [0, 1, 2, 3]),
        (5, 4, [0, 1, 2, 4]),
        (100, 4, [0, 33, 66, 99]),
        (9, 1, [0]),
    ],
)
def test_frames_are_evenly_spaced(total, count, places):
    assert video.evenly_spaced(total, count) == places


class _Container:
    """Stands in for an opened file: frame n is filled with level n."""

    def __init__(self, total):
        self.total = total

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def decode(self, video):
        assert video == 0
        for level in range(self.total):
            picture = Image.new("RGB", (30, 28), (level, 0, 0))
            yield SimpleNamespace(to_image=lambda picture=picture: picture)


@pytest.fixture
def fake_av(monkeypatch):
    def install(opened):
        monkeypatch.setitem(sys.modules, "av", SimpleNamespace(open=opened))

    return install


def test_with_the_extra_four_frames_become_a_clip(fake_av):
    fake_av(lambda path: _Container(10))
    patches, grid = media.preprocess("clip.mp4")
    assert grid == (4, 2, 4)
    assert patches.shape == (32, 3, 14, 14)
    reds = (patches[::8, 0, 0, 0] * 127.5 + 127.5).round().tolist()
    assert reds == [0, 3, 6, 9]


def test_a_video_without_frames_is_refused(fake_av):
    fake_av(lambda path: _Container(0))
    with pytest.raises(RequestError, match=r"clip\.mp4 has none"):
        media.preprocess("clip.mp4")


def test_a_video_that_does_not_decode_is_refused(fake_av):
    def fail(path):
        raise OSError("no moov atom")

    fake_av(fail)
    with pytest.raises(RequestError, match=r"clip\.mp4 does not \(OSError: no moov"):
        media.preprocess("clip.mp4")


def test_a_real_file_gives_its_frames(tmp_path):
    av = pytest.importorskip("av")
    path = tmp_path / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=5)
        stream.width, stream.height = 64, 32
        for level in range(0, 250, 25):
            picture = Image.new("RGB", (64, 32), (level, level, level))
            container.mux(stream.encode(av.VideoFrame.from_image(picture)))
        container.mux(stream.encode(None))
    found = video.frames(path)
    levels = [frame.getpixel((20, 10))[0] for frame in found]
    assert [frame.size for frame in found] == [(64, 32)] * 4
    assert all(
        abs(got - want) < 12
        for got, want in zip(levels, (0, 75, 150, 225), strict=True)
    )
