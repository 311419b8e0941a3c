"""Tables: CSV, JSON lines, SQLite, data frames, Parquet; and what is wrong in them."""

import json
import os
import pickle
import sqlite3
import threading

import numpy as np
import pytest

from burnish import data
from burnish.errors import InputError, RecordError

pl = pytest.importorskip("polars")


def items(dataset):
    return [dataset[i] for i in range(len(dataset))]


def test_csv_columns_have_the_first_kind_that_fits(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('name,age,height\n"Ng, Li",31,1.7\n\nBob,40,2\n')
    table = data.read_csv(path)
    assert table[0] == {"name": "Ng, Li", "age": 31, "height": 1.7}
    assert [c.dtype.kind for c in table.columns.values()] == ["T", "i", "f"]
    batch = next(iter(data.batches(table, 2)))
    assert batch["age"].tolist() == [31, 40]


def test_csv_says_what_its_reader_wants(tmp_path):
    path = tmp_path / "codes.tsv"
    path.write_text("007\tx\n010\ty\n")
    table = data.read_csv(
        path, delimiter="\t", names=["code", "b"], types={"code": str}
    )
    assert table.columns["code"].tolist() == ["007", "010"]
    (tmp_path / "none.csv").write_text("a,b\n")
    assert len(data.read_csv(tmp_path / "none.csv")) == 0


BAD_CSV = {
    "short row": (
        b"a,b\n1,2\n\n3\n",
        r"line 4: expected 2 fields, \['a', 'b'\], got 1",
    ),
    "a name of two lines": (b'"a\n",b\n3\n', r"fields, \['a.n', 'b'\], got 1"),
    "after text of two lines": (b'a,b\n"x\ny",2\n3\n', "line 4: expected 2 fields"),
    "open quote": (b'a,b\n1,2\n"x,3\n', "line 3: expected a row of CSV"),
    "no names": (b"", "line 1: expected a line of different names"),
    "names twice": (b"a,a\n", r"different names, got \['a', 'a'\]"),
    "not UTF-8": (b"a,b\n1,\xff\n", "expected UTF-8, got byte 0xff near line"),
    "not a number": (
        b"a,b\n1,2\n1,x\n",
        "line 3, column 'b': expected int, got 'x' .invalid literal",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD_CSV.values(), ids=BAD_CSV)
def test_csv_that_is_wrong(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    types = {"b": int} if b"x" in content else None
    with pytest.raises(RecordError, match=message) as caught:
        data.read_csv(path, types=types)
    assert str(caught.value).startswith(str(path))


def test_csv_types_name_columns(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"columns \['a'\], got c"):
        data.read_csv(tmp_path / "a.csv", types={"c": int})


def test_json_lines(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n\n{"a": [2, 3]}\n')
    assert data.read_json_lines(path) == [{"a": 1}, {"a": [2, 3]}]
    path.write_text('{"a": 1}\n\n{"a": \n')
    with pytest.raises(RecordError, match=r"line 3: expected a JSON value: Exp"):
        data.read_json_lines(path)


ROW = {
    "image": np.arange(6, dtype=np.float16).reshape(2, 3),
    "label": 3,
    "share": 0.5,
    "name": "a ' \" ü",
    "raw": b"\0\1",
    "right": True,
    "tags": ["x", {"y": 1}],
}


def write(path, rows, split="train", **options):
    with data.SqliteWriter(path, **options) as writer:
        for row in rows:
            writer.write(row, split)


def test_sqlite_keeps_every_kind(tmp_path):
    path = tmp_path / "a b?#.sqlite"
    rows = [ROW | {"label": i, "share": i} for i in range(700)]
    write(path, [*rows, dict.fromkeys(ROW)], 'a "split"')
    found = data.SqliteDataset(path, 'a "split"')
    assert len(found) == 701
    item = found[699]
    assert item["image"].dtype == np.float16
    assert (item["image"] == ROW["image"]).all()
    assert {k: v for k, v in item.items() if k != "image"} == {
        k: v for k, v in rows[699].items() if k != "image"
    }
    assert item["right"] is True
    assert set(found[-1].values()) == {None}
    order = np.random.default_rng(0).permutation(700)
    batch = found.get_batch(order)
    assert batch["label"].tolist() == order.tolist()
    assert batch["image"].shape == (700, 2, 3)
    found.close()
    assert found[0]["label"] == 0
    found.close()


def test_sqlite_keeps_tuples_and_bare_items(tmp_path):
    write(tmp_path / "t", [(np.zeros(2), i) for i in range(3)])
    x, y = next(iter(data.batches(data.SqliteDataset(tmp_path / "t"), 3)))
    assert (x.shape, y.tolist()) == ((3, 2), [0, 1, 2])
    write(tmp_path / "b", ["one", "two"])
    assert items(data.SqliteDataset(tmp_path / "b")) == ["one", "two"]


@pytest.mark.parametrize("processes", [False, True])
def test_sqlite_with_workers(tmp_path, processes):
    write(tmp_path / "rows", [(np.full(4, i), i) for i in range(40)])
    found = data.SqliteDataset(tmp_path / "rows")
    found[0]
    loader = data.batches(found, 3, num_workers=2, processes=processes)
    assert [i for _, y in loader for i in y.tolist()] == list(range(40))
    assert pickle.loads(pickle.dumps(found))[7][1] == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sqlite_opens_its_own_file_after_a_fork(tmp_path):
    write(tmp_path / "rows", range(9))
    found = data.SqliteDataset(tmp_path / "rows")
    child = os.fork()
    if not child:
        os._exit(found[5])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    assert found[8] == 8


def test_sqlite_written_by_threads(tmp_path):
    with data.SqliteWriter(tmp_path / "rows") as writer:
        each = [
            threading.Thread(target=lambda: [writer.write(i) for i in range(300)])
            for _ in range(3)
        ]
        [thread.start() for thread in each]
        [thread.join() for thread in each]
    found = items(data.SqliteDataset(tmp_path / "rows"))
    assert sorted(found) == sorted([*range(300)] * 3)


def test_sqlite_of_another_program(tmp_path):
    with sqlite3.connect(tmp_path / "own.db") as own:
        own.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, word VARCHAR(9))")
        own.executemany("INSERT INTO t VALUES (?, ?)", [(7, "a"), (3, "b"), (90, "c")])
    own.close()
    found = data.SqliteDataset(tmp_path / "own.db", "t")
    assert [item["word"] for item in items(found)] == ["b", "a", "c"]


def test_a_sqlite_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "rows"
    with pytest.raises(InputError):
        write(path, [1, "x"])
    assert list(tmp_path.iterdir()) == []
    write(path, [1])
    with pytest.raises(FileExistsError, match="overwrite=True"):
        data.SqliteWriter(path)
    with pytest.raises(InputError, match="in its `with` block"):
        data.SqliteWriter(path, overwrite=True).write(1)
    write(path, [2, 3], overwrite=True)
    assert items(data.SqliteDataset(path)) == [2, 3]
    assert [file.name for file in tmp_path.iterdir()] == ["rows"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"a": 1}, {"a": "x"}], "row 2 of 'train', 'a': expected INTEGER, .* TEXT"),
        ([{"a": 1}, {"b": 1}], r"row 2 .* expected columns \['a'\], got \['b'\]"),
        ([{"a": 1 + 2j}], "row 1 .* expected a number, text, .* got complex"),
        ([np.array([None])], "row 1|Object arrays cannot be saved"),
    ],
)
def test_rows_that_do_not_fit(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        write(tmp_path / "rows", rows)
    assert list(tmp_path.iterdir()) == []


def test_sqlite_that_is_wrong(tmp_path):
    path = tmp_path / "rows"
    with pytest.raises(FileNotFoundError, match="expected a SQLite file, got nothing"):
        data.SqliteDataset(path)
    assert not path.exists()
    write(path, [ROW])
    with pytest.raises(InputError, match=r"a table out of \['train'\], got 'test'"):
        data.SqliteDataset(path, "test")
    own = sqlite3.connect(path)
    own.execute("UPDATE train SET image = X'00'")
    own.commit()
    own.close()
    with pytest.raises(
        RecordError, match="row 1 of 'train': expected ARRAY in 'image'"
    ):
        data.SqliteDataset(path)[0]
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE\n'ABLE"))
    with pytest.raises(RecordError, match="that can be read, got: malf") as caught:
        data.SqliteDataset(path)
    assert "\n" not in str(caught.value)
    path.write_bytes(b"no database" * 100)
    with pytest.raises(RecordError, match="expected a SQLite file that can be read"):
        data.SqliteDataset(path)


def test_a_frame_is_a_dataset():
    frame = pl.DataFrame(
        {"x": np.arange(6.0).reshape(3, 2), "y": [1, 2, None], "word": ["a", "b", "c"]}
    )
    found = data.DataframeDataset(frame)
    assert found[1]["x"].tolist() == [2, 3]
    assert found[-1]["word"] == "c"
    batch = next(iter(data.batches(data.Subset(found, [1, 0]), 2)))
    assert batch["x"].numpy().tolist() == [[2, 3], [0, 1]]
    assert batch["y"].tolist() == [2, 1]
    assert batch["word"] == ["b", "a"]
    assert np.isnan(found.get_batch(np.arange(3))["y"][2])
    with pytest.raises(InputError, match=r"a polars.DataFrame, got builtins.dict"):
        data.DataframeDataset({})


FOLDERS = {
    "hub": ["data/train-00000-of-00002", "data/train-00001-of-00002", "data/test-0-1"],
    "converted": ["train/0000", "train/0001", "test/0000"],
    "flat": ["train-a", "train-b", "test"],
}


@pytest.mark.parametrize("names", FOLDERS.values(), ids=FOLDERS)
def test_parquet_folders(tmp_path, names):
    for place, name in enumerate(names):
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        pl.DataFrame({"n": [2 * place, 2 * place + 1]}).write_parquet(path)
    train = data.huggingface_dataset(tmp_path)
    assert [item["n"] for item in items(train)] == [0, 1, 2, 3]
    assert len(data.huggingface_dataset(tmp_path, "test")) == 2
    with pytest.raises(FileNotFoundError, match=r"'valid', got those of \['test', 'tr"):
        data.read_parquet(tmp_path, "valid")
    assert len(data.read_parquet(tmp_path / f"{names[0]}.parquet")) == 2


def test_parquet_that_is_wrong(tmp_path):
    pl.DataFrame({"n": [1]}).write_parquet(tmp_path / "train-0.parquet")
    content = (tmp_path / "train-0.parquet").read_bytes()
    (tmp_path / "train-1.parquet").write_bytes(content[:-20])
    with pytest.raises(RecordError, match=r"train-1.parquet: expected a Parquet file"):
        data.read_parquet(tmp_path)
    pl.DataFrame({"m": [1]}).write_parquet(tmp_path / "train-1.parquet")
    with pytest.raises(RecordError, match=r"train-1.parquet: expected columns .*'n'"):
        data.read_parquet(tmp_path)
    with pytest.raises(FileNotFoundError, match="expected Parquet files, got nothing"):
        data.read_parquet(tmp_path / "none")


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("./none", {}, FileNotFoundError, "a folder of Parquet files, got nothing"),
        (
            ".",
            {"token": "x"},
            InputError,
            "expected no options for a folder, got token",
        ),
    ],
)
def test_hub_sources_that_cannot_be(source, options, error, message):
    with pytest.raises(error, match=message):
        data.huggingface_dataset(source, **options)


def test_json_written_is_json_read(tmp_path):
    rows = [{"a": i, "b": [i] * i} for i in range(4)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    write(tmp_path / "rows", data.read_json_lines(path))
    assert items(data.SqliteDataset(tmp_path / "rows")) == rows
