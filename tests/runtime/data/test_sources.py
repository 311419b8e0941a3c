"""Pictures, texts and sounds in folders; every kind of damage says which file."""

import json
import struct
import sys
import wave

import numpy as np
import pytest

from burnish import data
from burnish.errors import DataError, InputError, RecordError

Image = pytest.importorskip("PIL.Image")
RED, BLUE = (255, 0, 0), (0, 0, 255)


def picture(path, color=RED, size=(6, 4), mode="RGB", **options):
    """A picture of one colour; size is (width, height)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new(mode, size, color)
    if mode == "P":
        image.putpalette(range(30))
    image.save(path, **options)
    return path


def noise(path, shape=(40, 40, 3)):
    pixels = np.random.default_rng(0).integers(0, 255, shape).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def test_a_folder_of_classes(tmp_path):
    for name, color in (("dog", RED), ("cat", BLUE)):
        for number in range(3):
            picture(tmp_path / name / "more" / f"{number}.PNG", color)
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    (tmp_path / ".cache").mkdir()
    found = data.ImageFolderDataset.classification(tmp_path)
    assert found.classes == ["cat", "dog"]
    assert len(found) == 6
    image, label = found[5]
    assert (image.shape, image.dtype, label) == ((4, 6, 3), np.uint8, 1)
    assert image[0, 0].tolist() == list(RED)
    small = data.ImageFolderDataset.classification(tmp_path, size=(2, 3), mode="L")
    x, y = next(iter(data.batches(small, 6, batcher=data.channels_first)))
    assert (x.shape, x.dtype) == ((6, 1, 2, 3), np.float32)
    assert y.tolist() == [0, 0, 0, 1, 1, 1]
    assert x.numpy().max() <= 1


@pytest.mark.parametrize("processes", [False, True])
def test_pictures_with_workers(tmp_path, processes):
    for number in range(8):
        picture(tmp_path / "a" / f"{number}.png", (number, 0, 0))
    found = data.ImageFolderDataset.classification(tmp_path)
    loader = data.batches(found, 3, num_workers=2, processes=processes)
    reds = [int(image[0, 0, 0].item()) for x, _ in loader for image in x]
    assert reds == list(range(8))


def test_several_labels(tmp_path):
    paths = [picture(tmp_path / f"{i}.png") for i in range(2)]
    items = [(paths[0], ["b", "c"]), (paths[1], [])]
    found = data.ImageFolderDataset.multilabel(items, ["a", "b", "c"])
    assert found[0][1].tolist() == [0, 1, 1]
    assert found[1][1].tolist() == [0, 0, 0]
    with pytest.raises(InputError, match=r"0.png: .* out of \['a'\], got 'b'"):
        data.ImageFolderDataset.multilabel(items, ["a"])
    with pytest.raises(FileNotFoundError, match=r"x.png: expected a picture, got noth"):
        data.ImageFolderDataset.multilabel([(tmp_path / "x.png", [])], ["a"])


@pytest.mark.parametrize("mode", ["L", "P", "I;16"])
def test_masks(tmp_path, mode):
    image = picture(tmp_path / "image.png")
    mask = picture(tmp_path / "mask.png", 2, mode=mode)
    found = data.ImageFolderDataset.segmentation([(image, mask)], ["a", "b", "c"])
    assert found[0][1].shape == (4, 6)
    assert (found[0][1] == 2).all()
    small = data.ImageFolderDataset.segmentation(
        [(image, mask)], ["a", "b", "c"], size=(2, 2)
    )
    assert (small[0][0].shape, small[0][1].shape) == ((2, 2, 3), (2, 2))


def test_masks_that_do_not_fit(tmp_path):
    image = picture(tmp_path / "image.png")

    def one(mask, **options):
        return data.ImageFolderDataset.segmentation([(image, mask)], "ab", **options)[0]

    with pytest.raises(
        FileNotFoundError, match=r"the mask of .*image.png, got nothing"
    ):
        one(tmp_path / "none.png")
    with pytest.raises(RecordError, match=r"m.png: expected values below 2, .* got 9"):
        one(picture(tmp_path / "m.png", 9, mode="L"))
    assert (one(tmp_path / "m.png", ignore=9)[1] == 9).all()
    with pytest.raises(RecordError, match=r"m.png: .* of \(4, 6\), as .* got \(6, 6\)"):
        one(picture(tmp_path / "m.png", 0, (6, 6), "L"))
    with pytest.raises(RecordError, match=r"m.png: .* one channel, got RGB"):
        one(picture(tmp_path / "m.png"))


COCO = {
    "images": [
        {"id": 9, "file_name": "b.png", "width": 6, "height": 4},
        {"id": 4, "file_name": "a.png", "width": 6, "height": 4},
    ],
    "categories": [{"id": 30, "name": "dog"}, {"id": 7, "name": "cat"}],
    "annotations": [
        {"id": 1, "image_id": 9, "category_id": 30, "bbox": [1, 2, 3, 1.5]},
        {"id": 2, "image_id": 9, "category_id": 7, "bbox": [0, 0, 6, 4]},
    ],
}


def coco(folder, content=COCO, **options):
    for name in "ab":
        picture(folder / f"{name}.png")
    path = folder / "instances.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return data.ImageFolderDataset.coco(path, folder, **options)


def test_objects_of_coco(tmp_path):
    found = coco(tmp_path)
    assert found.classes == ["cat", "dog"]
    _, first = found[0]
    assert first["boxes"].tolist() == [[1, 2, 3, 1.5], [0, 0, 6, 4]]
    assert first["labels"].tolist() == [1, 0]
    assert found[1][1]["boxes"].shape == (0, 4)
    half = coco(tmp_path, size=(2, 12))
    assert half[0][1]["boxes"][0].tolist() == [2, 1, 6, 0.75]
    _, objects = next(iter(data.batches(found, 2, collate=data.as_lists)))
    assert [each["labels"].shape for each in objects] == [(2,), (0,)]


def changed(key, **values):
    return COCO | {key: [COCO[key][0] | values, *COCO[key][1:]]}


BAD_COCO = {
    "category": (
        changed("annotations", category_id=8),
        r"annotation 1: .*\[7, 30\], g",
    ),
    "image": (changed("annotations", image_id=1), "annotation 1: .*an image, got 1"),
    "box": (changed("annotations", bbox=[1]), r"four numbers as 'bbox', got \[1\]"),
    "no box": (changed("annotations", bbox=None), "'bbox', got None"),
    "no id": (changed("categories", id=None), "'id' of category None, got None"),
    "no name": (changed("images", file_name=3), "'file_name' of image 9, got 3"),
    "no list": (COCO | {"images": {}}, "list of objects under 'images', got dict"),
    "no object": ("[]", "under 'images', got NoneType"),
    "a huge box": (changed("annotations", bbox=[10**400, 0, 1, 1]), "four numbers"),
    "no number": (changed("annotations", bbox=[float("nan"), 0, 1, 1]), "four numbers"),
    "the folder above": (changed("images", file_name="../b.png"), "a file below"),
    "from the root": (changed("images", file_name="/etc/passwd"), "a file below"),
    "by a detour": (changed("images", file_name="a/../../b.png"), "a file below"),
    "no text": (changed("images", file_name="\ud800.png"), "a file below"),
    "no JSON": ('{"images": [', "expected JSON text: Exp"),
}


@pytest.mark.parametrize(("content", "message"), BAD_COCO.values(), ids=BAD_COCO)
def test_coco_that_is_wrong(tmp_path, content, message):
    with pytest.raises(RecordError, match=message) as caught:
        coco(tmp_path, content)
    assert str(caught.value).startswith(str(tmp_path / "instances.json"))


def test_coco_without_a_picture(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"c.png: .* which .*instances.json nam"
    ):
        coco(tmp_path, changed("images", file_name="c.png"))


@pytest.mark.parametrize("ending", ["png", "jpg", "webp", "bmp"])
def test_truncated_pictures(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    noise(path)
    content = path.read_bytes()
    for end in (0, 10, len(content) // 2):
        path.write_bytes(content[:end])
        with pytest.raises(RecordError, match="expected a whole picture, got damage"):
            data.read_picture(path)
        with pytest.raises(RecordError, match="column x: expected"):
            data.read_picture(content[:end], where="column x")


def test_a_damaged_picture_in_a_loader_is_named(tmp_path):
    for number in range(6):
        picture(tmp_path / "a" / f"{number}.png")
    path = tmp_path / "a" / "4.png"
    path.write_bytes(path.read_bytes()[:40])
    found = data.ImageFolderDataset.classification(tmp_path)
    with pytest.raises(
        DataError, match=r"item 4: RecordError: .*4.png: expected a who"
    ):
        list(data.batches(found, 2, num_workers=2))


def test_pictures_are_as_the_camera_was_held(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    path = picture(tmp_path / "a.jpg", size=(6, 4), exif=exif)
    assert data.read_picture(path).shape == (6, 4, 3)
    mask = picture(tmp_path / "m.png", 0, (4, 6), "L")
    found = data.ImageFolderDataset.segmentation([(path, mask)], "a")
    assert found[0][0].shape[:2] == found[0][1].shape


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            data.ImageFolderDataset.classification,
            RecordError,
            "a folder for each class",
        ),
        (data.TextFolderDataset, RecordError, "a folder for each class"),
        (data.AudioFolderDataset, RecordError, "a folder for each class"),
    ],
)
def test_folders_that_are_empty(tmp_path, make, error, message):
    with pytest.raises(error, match=message):
        make(tmp_path)
    with pytest.raises(FileNotFoundError, match="a folder of classes, got none"):
        make(tmp_path / "none")
    (tmp_path / "a").mkdir()
    with pytest.raises(RecordError, match=r"a: expected files that end in \."):
        make(tmp_path)


def records(count, labels, classes):
    rng = np.random.default_rng(count)
    rows = rng.integers(0, 255, (count, labels + 3072)).astype(np.uint8)
    rows[:, :labels] %= classes
    return rows


def test_cifar_10(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    each = [records(i, 1, 10) for i in range(1, 6)]
    for number, rows in enumerate(each, 1):
        rows.tofile(folder / f"data_batch_{number}.bin")
    records(4, 1, 10).tofile(folder / "test_batch.bin")
    train, test = (data.Cifar10Dataset(tmp_path, s) for s in ("train", "test"))
    assert (len(train), len(test)) == (15, 4)
    image, label = train[2]
    assert (image.shape, label) == ((32, 32, 3), each[1][1, 0])
    assert image[0, 1].tolist() == each[1][1, [2, 1026, 2050]].tolist()
    path = folder / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(
        RecordError, match=r"test_batch.bin: .* of 3073 bytes, got 12287"
    ):
        data.Cifar10Dataset(folder, "test")
    (records(4, 1, 10) | 16).tofile(path)
    with pytest.raises(RecordError, match=r"labels below 10, got .* in record"):
        data.Cifar10Dataset(folder, "test")
    with pytest.raises(InputError, match="'train' or 'test', got 'valid'"):
        data.Cifar10Dataset(folder, "valid")
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_3.bin"):
        data.Cifar10Dataset(folder)


def test_cifar_100(tmp_path):
    rows = records(6, 2, 20)
    rows.tofile(tmp_path / "train.bin")
    assert data.Cifar100Dataset(tmp_path).labels.tolist() == rows[:, 1].tolist()
    coarse = data.Cifar100Dataset(tmp_path, coarse=True)
    assert coarse.labels.tolist() == rows[:, 0].tolist()


def test_texts(tmp_path):
    for name in ("pos", "neg"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_text(f"so {name} ü", encoding="utf-8")
    found = data.TextFolderDataset(tmp_path)
    assert (found.classes, found[1]) == (["neg", "pos"], ("so pos ü", 1))
    (tmp_path / "pos" / "1.txt").write_bytes(b"so \xe9")
    with pytest.raises(RecordError, match=r"1.txt: expected UTF-8, got 0xe9 at byte 3"):
        found[1]


def test_news(tmp_path):
    (tmp_path / "train.csv").write_text('"3","Oil, up","It ""rose""."\n"1","A","B"\n')
    found = data.AgNewsDataset(tmp_path)
    assert found[0] == {"title": "Oil, up", "content": 'It "rose".', "label": 2}
    assert found.classes[found[0]["label"]] == "Business"
    (tmp_path / "test.csv").write_text('"1","A","B"\n"5","A","B"\n')
    with pytest.raises(RecordError, match=r"test.csv, line 2, column 'label': .*'5'"):
        data.AgNewsDataset(tmp_path, "test")
    with pytest.raises(InputError, match="'train' or 'test'"):
        data.AgNewsDataset(tmp_path, "valid")


def sound(path, values, width=2, channels=1, rate=16000):
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = np.round(np.asarray(values) * 2.0 ** (8 * width - 1)).astype(np.int64)
    whole += 128 * (width == 1)
    content = whole.astype("<i8")[..., None].view(np.uint8)[..., :width].tobytes()
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(content)
    return path


VALUES = [0.0, 0.5, -0.5, -1.0, 0.25, 0.75]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sounds_of_every_width(tmp_path, width, channels):
    path = sound(tmp_path / "a.wav", VALUES, width, channels, 8000)
    samples, rate = data.read_wav(path)
    assert rate == 8000
    assert samples.dtype == np.float32
    assert samples.T.ravel().tolist() == VALUES
    assert samples.shape == (channels, 6 // channels)


def test_sounds_in_folders(tmp_path):
    sound(tmp_path / "no" / "1.wav", VALUES)
    sound(tmp_path / "yes" / "1.wav", VALUES[:2])
    sound(tmp_path / "_background_noise_" / "1.wav", VALUES)
    found = data.AudioFolderDataset(tmp_path, length=4)
    assert found.classes == ["no", "yes"]
    x, y = next(iter(data.batches(found, 2)))
    assert x.tolist() == [VALUES[:4], [0, 0.5, 0, 0]]
    assert y.tolist() == [0, 1]
    with pytest.raises(RecordError, match=r"1.wav: expected 8000 Hz, got 16000 Hz"):
        data.AudioFolderDataset(tmp_path, rate=8000)[0]


def test_spoken_commands(tmp_path):
    for word in ("no", "yes"):
        for number in range(4):
            sound(tmp_path / word / f"{number}.wav", [number / 8] * 9)
    (tmp_path / "validation_list.txt").write_text("no/1.wav\nyes/1.wav\n")
    (tmp_path / "testing_list.txt").write_text("yes/2.wav\n")
    sizes = {s: data.SpeechCommandsDataset(tmp_path, s) for s in ("valid", "test")}
    train = data.SpeechCommandsDataset(tmp_path, "train")
    assert (len(train), *map(len, sizes.values())) == (5, 2, 1)
    samples, label = sizes["test"][0]
    assert (samples.shape, samples[8], samples[9], label) == ((16000,), 0.25, 0, 1)
    (tmp_path / "yes" / "2.wav").unlink()
    with pytest.raises(
        RecordError, match=r"2.wav: expected a file, which testing_list"
    ):
        data.SpeechCommandsDataset(tmp_path, "test")
    with pytest.raises(InputError, match="'valid' or 'test', got 'dev'"):
        data.SpeechCommandsDataset(tmp_path, "dev")


def test_sounds_that_are_damaged(tmp_path):
    path = sound(tmp_path / "a.wav", VALUES)
    content = path.read_bytes()
    for end in (0, 20, len(content) - 4):
        path.write_bytes(content[:end])
        with pytest.raises(RecordError, match=r"a.wav: expected "):
            data.read_wav(path)
    floats = content[:20] + struct.pack("<H", 3) + content[22:]
    with pytest.raises(
        RecordError, match=r"a WAV file: .*\(PCM\), got: unknown format"
    ):
        data.read_wav(floats)


def test_media_in_parquet_files(tmp_path):
    pl = pytest.importorskip("polars")
    pixels = noise(tmp_path / "a.png", (5, 4, 3))
    samples = sound(tmp_path / "a.wav", VALUES).read_bytes()
    file = {"bytes": (tmp_path / "a.png").read_bytes(), "path": "a.png"}
    broken = {"bytes": file["bytes"][:50], "path": "b.png"}
    sounds = {"bytes": samples, "path": None}
    flac = {"bytes": b"fLaC\0\0\0\x22", "path": "c.flac"}
    frame = pl.DataFrame(
        {
            "image": [file, broken, None],
            "sound": [sounds, None, flac],
            "label": [1, 2, 3],
        }
    )
    frame.write_parquet(tmp_path / "train.parquet")
    found = data.huggingface_dataset(tmp_path)
    assert (found[0]["image"] == pixels).all()
    assert found[0]["sound"].tolist() == [VALUES]
    assert found[0]["label"] == 1
    with pytest.raises(
        RecordError, match=r"column 'image', b.png: expected a whole pic"
    ):
        found[1]
    with pytest.raises(RecordError, match=r"'sound', c.flac: .* or a WAV file, got"):
        found[2]


@pytest.mark.parametrize(
    ("module", "use"),
    [
        ("PIL", lambda: data.read_picture(b"")),
        ("polars", lambda: data.read_parquet(".")),
        ("datasets", lambda: data.huggingface_dataset("some/name")),
    ],
)
def test_what_is_not_installed_is_reported(monkeypatch, module, use):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, f"{module}.Image", None)
    with pytest.raises(InputError, match=r"expected .*; pip install "):
        use()


def test_a_picture_of_coco_behind_a_link_that_leaves(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    picture(tmp_path / "secret.png")
    (folder / "c.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(RecordError, match="a link that leaves it"):
        coco(folder, changed("images", file_name="c.png"))
