"""Write the seeds that fuzzing starts from: one small file for each thing a reader knows.

    python fuzz/seeds.py FOLDER [CONFORMAX]

needs NumPy and PyArrow; with the path of the `conformax` command it also writes calibration files. What is committed in
fuzz/corpus is what fuzzing made of these, minimised.
"""

import base64
import datetime
import decimal
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

FOLDER = pathlib.Path(sys.argv[1])
ROWS = np.log(np.array([[0.7, 0.3], [0.25, 0.75], [1.0, 0.5]]))
LABELS = [0, 1, 1]
NAMES = ["cat", "dog"]


def seed(target, name, content):
    """Write one seed."""
    path = FOLDER / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def npy_bytes(array, version=None):
    """An array as NumPy saves it."""
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), version=version, allow_pickle=False)
    return out.getvalue()


def raw_npy(header, data):
    """An array with this very header."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def arrays():
    """Arrays of every type and order, and names for them."""
    for kind in ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8"]:
        yield kind.replace("<", "little-").replace(">", "big-"), npy_bytes(ROWS.astype(kind))
    bf16 = (ROWS.astype("<f4").view("<u4") >> 16).astype("<u2").view("V2")
    yield "bf16", npy_bytes(bf16)
    yield "bf16-big", npy_bytes(bf16).replace(b"'|V2'", b"'>V2'")
    for kind in ["<f2", ">f4", "<f8"]:
        yield "fortran-" + kind[1:], npy_bytes(np.asfortranarray(ROWS.astype(kind)))
    yield "fortran-bf16", npy_bytes(np.asfortranarray(bf16))
    yield "version2", npy_bytes(ROWS, (2, 0))
    yield "version3", npy_bytes(ROWS, (3, 0))
    yield "one-row", npy_bytes(np.asfortranarray(ROWS[:1]))
    yield "no-rows", npy_bytes(ROWS[:0])
    yield "no-classes", npy_bytes(ROWS[:, :0])
    yield "cube", npy_bytes(ROWS.reshape(1, 3, 2))
    yield "infinite", npy_bytes(np.array([[-np.inf, 1.0], [np.nan, 0.0], [np.inf, 0.0]]))
    yield "masked", npy_bytes(np.full((3, 2), -np.inf, "<f4"))
    yield "complex", npy_bytes(ROWS.astype("<c8"))
    yield "record", npy_bytes(np.zeros(3, [("a", "<f4"), ("b", "<i2")]))
    yield "scalar", npy_bytes(np.float32(1))
    yield "python2", raw_npy("{\"descr\": '=f4', 'fortran_order': False, 'shape': (3L, 2L)}", bytes(24))
    yield "longer", raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", bytes(12))
    yield "huge", raw_npy("{'descr': '<f8', 'fortran_order': True, 'shape': (4294967296, 65536)}", bytes(16))
    yield "key", raw_npy("{'descr': '<f8', 'order': 'C', 'shape': (1, 2)}", bytes(16))
    yield "version9", b"\x93NUMPY\x09\x00" + bytes(8)
    yield "long-header", b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30)


def vectors():
    """Labels of every type, as arrays."""
    for kind in ["|i1", "<i2", "<i4", "<i8", ">i2", ">i8", "|u1", "<u2", ">u4", "<u8", "|b1"]:
        yield kind.strip("|").replace("<", "little-").replace(">", "big-"), np.array(LABELS).astype(kind)
    yield "text", np.array(["cat", "dog", "dog"])
    yield "text-big", np.array(["cat", "dog", "dog"]).astype(">U4")
    yield "bytes", np.array([b"cat", b"dog", b"0"])
    yield "column", np.array(LABELS, "<i4").reshape(3, 1)
    yield "floats", np.array(LABELS, "<f4")
    yield "halves", np.array(LABELS, ">f2")
    yield "outside", np.array([0, 1, 2], "<i4")
    yield "unknown", np.array(["cat", "cow", "dog"])
    yield "short", np.array([0, 1], "<i4")
    yield "square", np.zeros((3, 3), "<i4")
    yield "dates", np.array(["2020-01-01"] * 3, "<M8[D]")


def npz_bytes(entries, method=zipfile.ZIP_DEFLATED):
    """A zip of arrays."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def npy_and_npz():
    for name, content in arrays():
        seed("npy", name, content)
    for name, array in vectors():
        seed("npy", "labels-" + name, npy_bytes(array))
    labels = {"labels.npy": npy_bytes(np.array(LABELS, "|u1"))}
    full = {
        "logits.npy": npy_bytes(np.exp(ROWS)),
        "label.npy": npy_bytes(np.array(["dog", "cat", "cat"])),
        "id.npy": npy_bytes(np.array([7, 8, 9], "<u2")),
        "class_names.npy": npy_bytes(np.array(NAMES)),
        "note.txt": b"not an array",
    }
    for method, word in [(zipfile.ZIP_STORED, "stored"), (zipfile.ZIP_DEFLATED, "deflated")]:
        for kind in ["<f4", "<f8", "<f2"]:
            logits = npy_bytes(ROWS.astype(kind))
            seed("npz", f"{word}-{kind[1:]}", npz_bytes({"logits.npy": logits, **labels}, method))
            fortran = npy_bytes(np.asfortranarray(ROWS.astype(kind)))
            seed("npz", f"{word}-fortran-{kind[1:]}", npz_bytes({"logits.npy": fortran, **labels}, method))
        seed("npz", f"{word}-everything", npz_bytes(full, method))
        seed("npz", f"{word}-scores", npz_bytes({"scores.npy": npy_bytes(ROWS)}, method))
    for name, array in vectors():
        seed("npz", "labels-" + name, npz_bytes({"logits.npy": npy_bytes(ROWS), "labels.npy": npy_bytes(array)}))
    for name, names in [("bytes", [b"cat", b"dog"]), ("twice", ["cat", "cat"]), ("three", ["a", "b", "c"])]:
        content = {"logits.npy": npy_bytes(ROWS), "classes.npy": npy_bytes(np.array(names)), **labels}
        seed("npz", "names-" + name, npz_bytes(content))
    logits = npy_bytes(ROWS.astype("<f4"))
    seed("npz", "bzip2", npz_bytes({"logits.npy": logits}, zipfile.ZIP_BZIP2))
    encrypted = bytearray(npz_bytes({"logits.npy": logits, **labels}))
    for at in range(len(encrypted) - 4):
        if encrypted[at : at + 4] == b"PK\x01\x02":
            encrypted[at + 8] |= 1
    seed("npz", "encrypted", bytes(encrypted))
    damaged = bytearray(npz_bytes({"logits.npy": logits, **labels}, zipfile.ZIP_STORED))
    damaged[damaged.find(b"\n") + 2] ^= 1
    seed("npz", "checksum", bytes(damaged))
    seed("npz", "comment", npz_bytes({"logits.npy": logits}) [:-2] + struct.pack("<H", 3) + b"end")


def tables():
    """Tables with a column of lists and one more thing each."""
    def table(values, kind, lists=None, **columns):
        item = pa.field("item", kind)
        column = pa.array([list(map(kind_of(kind), row)) for row in values], (lists or pa.list_)(item))
        return pa.table({"logits": column, **columns})

    def kind_of(kind):
        return np.float16 if kind == pa.float16() else float

    label = pa.array(LABELS, pa.int32())
    for kind, name in [(pa.float16(), "f16"), (pa.float32(), "f32"), (pa.float64(), "f64")]:
        yield "list-" + name, table(ROWS, kind, label=label)
    yield "large-list", table(ROWS, pa.float32(), pa.large_list, label=label)
    yield "fixed-list", table(ROWS, pa.float32(), lambda item: pa.list_(item, 2), label=label)
    probabilities = np.exp(ROWS)
    columns = {
        "bool": pa.array([True, False, None]),
        "i8": pa.array([1, None, 3], pa.int8()),
        "u64": pa.array([1, 2, 2**63], pa.uint64()),
        "f16": pa.array(np.array([1, 2, 3], np.float16)),
        "f64": pa.array([1.5, None, 2.5]),
        "text": pa.array(["a", None, "c"]),
        "large-text": pa.array(["a", None, "c"], pa.large_string()),
        "view": pa.array(["a", None, "longer than twelve bytes"], pa.string_view()),
        "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
        "date": pa.array([datetime.date(2020, 1, 1)] * 3),
        "decimal": pa.array([decimal.Decimal("1.25")] * 3),
        "time": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        "bytes": pa.array([b"a", b"\xff", None]),
        "list": pa.array([[1], [], None], pa.list_(pa.int8())),
        "struct": pa.array([{"a": 1}] * 3),
    }
    for name, column in columns.items():
        yield "id-" + name, table(probabilities, pa.float32(), label=label, id=column)
    for name in ["bool", "u64", "text", "f64", "dictionary"]:
        yield "label-" + name, table(ROWS, pa.float32(), label=columns[name])
    named = table(ROWS, pa.float32(), label=pa.array(["cat", "dog", "dog"]))
    yield "names", named.replace_schema_metadata({"class_names": json.dumps(NAMES)})
    field = named.schema.field("logits").with_metadata({"classes": json.dumps(NAMES)})
    yield "names-of-field", named.cast(pa.schema([field, named.schema.field("label")]))
    yield "scores", table(ROWS, pa.float64()).rename_columns(["scores"])
    yield "ragged", pa.table({"logits": pa.array([[1.0, 2.0], [3.0]]), "label": label[:2]})
    yield "null-list", pa.table({"logits": pa.array([[1.0, 2.0], None]), "label": label[:2]})
    yield "null-item", pa.table({"logits": pa.array([[1.0, None]]), "label": label[:1]})
    fixed = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    yield "null-fixed", pa.table({"logits": fixed, "label": label})
    yield "integers", pa.table({"logits": pa.array([[1, 2]]), "label": label[:1]})
    yield "flat", pa.table({"logits": pa.array([1.0, 2.0])})
    wide = {"id": pa.array([17, 4, 90]), "cat": pa.array([-0.5, -0.25, -1.0], pa.float32())}
    yield "wide", pa.table({**wide, "dog": pa.array([-1.5, -1.5, -0.25]), "label": pa.array(["cat", "dog", "cat"])})
    yield "no-rows", table(ROWS, pa.float32()).slice(0, 0)


def parquet_bytes(table, **options):
    out = io.BytesIO()
    pq.write_table(table, out, store_schema=options.pop("store_schema", False), **options)
    return out.getvalue()


def ipc_bytes(table, opener, **options):
    out = io.BytesIO()
    with opener(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=2)
    return out.getvalue()


def parquet_and_arrow():
    for name, table in tables():
        try:
            seed("parquet", name, parquet_bytes(table, compression="none"))
        except pa.ArrowNotImplementedError:
            pass
        seed("arrow", name, ipc_bytes(table, pa.ipc.new_stream))
    table = dict(tables())["id-text"]
    for compression in ["snappy", "gzip", "zstd", "lz4", "brotli"]:
        seed("parquet", compression, parquet_bytes(table, compression=compression, use_dictionary=False))
    seed("parquet", "page-v2", parquet_bytes(table, data_page_version="2.0", compression="zstd"))
    seed("parquet", "groups", parquet_bytes(table, row_group_size=2, compression="none"))
    seed("parquet", "arrow-schema", parquet_bytes(table, store_schema=True, compression="none"))
    seed("parquet", "delta", parquet_bytes(table, use_dictionary=False, compression="none",
         column_encoding={"id": "DELTA_BYTE_ARRAY", "label": "DELTA_BINARY_PACKED",
                          "logits.list.element": "BYTE_STREAM_SPLIT"}))
    seed("parquet", "checksum", parquet_bytes(table, write_page_checksum=True, compression="none"))
    seed("parquet", "index", parquet_bytes(table, write_page_index=True, compression="none"))
    for name in ["list-f32", "fixed-list", "id-dictionary", "names"]:
        seed("arrow", "file-" + name, ipc_bytes(dict(tables())[name], pa.ipc.new_file))
    for compression in ["lz4", "zstd"]:
        seed("arrow", compression, ipc_bytes(table, pa.ipc.new_file, compression=compression))
    seed("arrow", "legacy", ipc_bytes(table, pa.ipc.new_stream, use_legacy_format=True))


def csv_and_json():
    for name, text in {
        "names": "cat,dog,label\n1,2,dog\n-inf,2.5e0,cat\n",
        "indices": "0,1,labels\n0.5,0.5,1\n1,0,0\n",
        "kept": 'id,cat,dog,label\n"a, b",0.25,0.75,1\n,1,0,cat\n',
        "quotes": '"c""at","dog","label"\r\n" 1 ","2","dog"\r\n',
        "mark": "\ufeffcat,dog\n-1,-2\n",
        "no-header": "0.5,1.5\n1,2\n",
        "years": "1990,1991,label\n1,2,1991\n",
        "word": "cat,dog\n1,x\n",
        "empty-cell": "0,1\n1,\n",
        "ragged": "cat,dog\n1,2\n1\n",
        "twice": "cat,cat\n1,2\n",
        "no-rows": "cat,dog,label\n",
        "nan": "cat,dog\nNaN,inf\n1,2\n",
        "labels-alone": "label\n1\n",
        "no-label": "cat,dog,label\n1,2,\n",
        "unknown": "cat,dog,label\n1,2,cow\n",
        "row-numbers": "n,cat,dog,label\n1,0.5,1.5,dog\n2,0.25,1,cat\n3,1,0.5,dog\n",
        "index": ",cat,dog\n0,0.5,1.5\n1,0.25,1\n",
        "semicolons": "cat;dog;note;label\n0.5;1.5;a;true\n0,25;1;b;False\n",
        "tabs": "cat\tdog\tlabel\n1\t2\t1.0\n",
        "both-labels": "cat,dog,label,labels\n1,2,0,1\n",
    }.items():
        seed("csv", name, text)
    seed("csv", "latin", b"cat,dog,label\n1,2,\xff\n")
    seed("csv", "latin-header", b"c\xe9t,dog\n1,2\n")
    first = '{"logits":[0.25,0.75],"label":1,"id":7}\n'
    for name, text in {
        "plain": first + '{"logits":[1,0],"label":0,"id":8}\n',
        "names": '{"logits":[1,2],"label":"dog","class_names":["cat","dog"]}\n\n{"logits":[3,"-inf"],"label":1}\n',
        "id-text": first.replace("7", '"a"') + first.replace("7", "null") + first.replace("7", "[1]"),
        "id-bool": first.replace("7}", "true}") + first.replace("7}", "1}"),
        "id-float": first.replace("7}", "1.5}") + first.replace("7}", "null}") + first.replace("7}", '"x"}'),
        "id-large": first.replace("7}", "18446744073709551615}") + first.replace("7}", "-1}"),
        "id-int": first + first.replace("7}", "true}"),
        "scores": '{"scores":[-0.5,-1]}\n{"scores":[-1,0.5]}\n',
        "ragged": first + '{"logits":[1],"label":0}\n',
        "null": '{"logits":[1,null]}\n',
        "word": '{"logits":[1,"x"]}\n',
        "deep": '{"logits":[1,[2]]}\n',
        "text": '{"logits":"1,2"}\n',
        "number": "{\"logits\":[1,-Infinity]}\n",
        "no-label": first + '{"logits":[1,2]}\n',
        "labels": '{"logits":[1,2],"labels":1}\n{"logits":[1,2],"labels":1.5}\n',
        "twice": '{"logits":[1,2],"classes":["a","a"]}\n',
        "empty": "\n \n",
        "no-classes": '{"logits":[]}\n',
        "large": '{"logits":[1e400,2]}\n',
        "outside": '{"logits":[1,2],"label":-1}\n',
        "key-twice": '{"logits":[1,2],"label":0,"label":1}\n',
        "names-wrong": '{"logits":[1,2],"class_names":[1,2]}\n',
        "label-list": '{"logits":[1,2],"label":[1]}\n{"logits":[1,2],"label":true}\n',
        "mark": '\ufeff{"logits":[1,2],"label":"1.0"}\n',
    }.items():
        seed("jsonl", name, text)
    seed("jsonl", "latin", b'{"logits":[1,2],"label":"\xff"}\n')


def safetensors_bytes(tensors, notes=None):
    header, data = ({"__metadata__": notes} if notes else {}), b""
    for name, (kind, shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors():
    widths = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
    for kind, width in widths.items():
        logits = (kind, [3, 2], ROWS.astype(width).tobytes())
        seed("safetensors", kind.lower(), safetensors_bytes({"logits": logits, "labels": ("U8", [3], bytes(LABELS))}))
    seed("safetensors", "bf16", safetensors_bytes({"logits": ("BF16", [3, 2], bytes(12))}))
    logits = ("F32", [3, 2], np.exp(ROWS).astype("<f4").tobytes())
    for kind, width in [("I8", 1), ("I16", 2), ("U16", 2), ("I32", 4), ("U32", 4), ("I64", 8), ("U64", 8), ("BOOL", 1)]:
        label = (kind, [3, 1] if kind == "I8" else [3], bytes(3 * width))
        seed("safetensors", "label-" + kind.lower(), safetensors_bytes({"logits": logits, "label": label, "id": label}))
    label = ("U8", [3], bytes(LABELS))
    for key in ["class_names", "classes", "note"]:
        notes = {key: json.dumps(NAMES)}
        seed("safetensors", key, safetensors_bytes({"logits": logits, "label": label}, notes))
    seed("safetensors", "scores", safetensors_bytes({"scores": ("F64", [3, 2], ROWS.tobytes())}))
    seed("safetensors", "integers", safetensors_bytes({"logits": ("I32", [3, 2], bytes(24))}))
    seed("safetensors", "flat", safetensors_bytes({"logits": ("F32", [6], bytes(24))}))
    seed("safetensors", "float8", safetensors_bytes({"logits": logits, "labels": ("F8_E4M3", [3], bytes(3))}))
    seed("safetensors", "square", safetensors_bytes({"logits": logits, "labels": ("U8", [1, 3], bytes(3))}))
    seed("safetensors", "two-labels", safetensors_bytes({"logits": logits, "labels": ("U8", [2], bytes(2))}))
    lie = safetensors_bytes({"logits": logits}).replace(b"[3,2]", b"[9,2]")
    seed("safetensors", "lie", lie)
    seed("safetensors", "long-header", struct.pack("<Q", 1 << 40) + b"{}")


def class_names():
    seed("class_names", "json", json.dumps(NAMES))
    seed("class_names", "lines", "cat\ndog  \r\nkläss\n")
    seed("class_names", "twice", "cat\ncat\n")
    seed("class_names", "empty", "")
    seed("class_names", "latin", b"c\xe9t\n")


def rows():
    """Rows for the kernels: score and float type, parameter, threshold, logits."""
    generator = np.random.default_rng(7)
    kinds = ["<f2", None, "<f4", "<f8"]
    for pick in range(0, 256, 4):
        width = pick // 4 % 4
        classes = [1, 2, 5, 16, 17, 33, 48][pick // 4 % 7]
        logits = np.round(generator.normal(0, 3, classes) * 4) / 4
        if pick % 3 == 0 and classes > 2:
            logits[1] = -np.inf
        kind = kinds[width]
        content = logits.astype(kind).tobytes() if kind else (
            (logits.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes())
        parameter = [1.5, 2.0, 1.3, 0.01, 1.0, 3.0][pick // 4 % 6]
        seed("rows", f"pick-{pick:03}", bytes([pick | width]) + struct.pack("<dd", parameter, 2.5) + content)
    for name, logits in {
        "huge": [1e308, -1e308, 3e300], "tiny": [5e-324, 0.0, -0.0, 1e-310], "nan": [1.0, np.nan],
        "infinite": [1.0, np.inf], "masked": [-np.inf, -np.inf], "near": [1.0, np.nextafter(1, 2), 1.0],
    }.items():
        for pick in [3 + 4 * 6, 3 + 4 * 8, 3 + 4 * 2, 3 + 4 * 38]:
            content = bytes([pick]) + struct.pack("<dd", np.nan, 1e200) + np.array(logits).tobytes()
            seed("rows", f"{name}-{pick:03}", content)


def studies():
    paper = pathlib.Path(__file__).resolve().parent.parent / "crates/conformax-study/studies/paper.toml"
    seed("study", "paper", paper.read_bytes())
    small = 'name = "s"\nsplits = 2\ncalibration = 0.5\nlevels = [0.1]\n[[benchmarks]]\nname = "cifar10"\n'
    procedure = '[[procedures]]\nname = "p"\nscore = "entmax"\n'
    for name, text in {
        "small": small + procedure,
        "gamma": small + procedure + "gamma = 1.5\n",
        "tuned": small + procedure + "tune = { gamma = [1.1, 1.5] }\n",
        "raps": small + procedure.replace("entmax", "raps") + 'penalty = "fixed"\nlambda = 0.1\nk_reg = 2\n',
        "grid": small + procedure.replace("entmax", "raps") + "tune = { lambda = [0.1, 1], k_reg = [1, 2, 3] }\n",
        "randomized": small + procedure.replace("entmax", "aps") + "randomized = false\n",
        "sweep": "sweep = [1.0, 2]\nstrata = [0, 2]\nseed = 3\nclaim_splits = 4\ntuning = 0.4\n" + small + procedure,
        "path": small + 'path = "/"\ntitle = "T"\n' + procedure,
        "pair": small + 'logits = "a.npy"\nlabels = "b.npy"\n' + procedure,
        "penalty": small + procedure + 'penalty = "some"\n',
        "few-claims": "claim_splits = 1\n" + small + procedure,
        "no-level": small.replace("[0.1]", "[]") + procedure,
        "level-twice": small.replace("[0.1]", "[0.1, 0.10]") + procedure,
        "level-outside": small.replace("[0.1]", "[1.5]") + procedure,
        "no-split": small.replace("splits = 2", "splits = 0") + procedure,
        "share": small.replace("= 0.5", "= 1.5") + procedure,
        "strata-unsorted": "strata = [3, 2]\n" + small + procedure,
        "sweep-outside": "sweep = [99]\n" + small + procedure,
        "no-procedure": "procedures = []\n" + small,
        "procedure-twice": small + procedure + procedure,
        "unknown-benchmark": small.replace("cifar10", "mine") + procedure,
        "logits-alone": small + 'logits = "a.npy"\n' + procedure,
        "no-candidate": small + procedure + "tune = { gamma = [] }\n",
        "no-score": small + procedure.replace("entmax", "none"),
        "no-toml": "name = ",
    }.items():
        seed("study", name, text)


def models(command):
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "cal.csv"
        generator = np.random.default_rng(3)
        lines = [f"{a:.2f},{b:.2f},{c:.2f},{k}" for (a, b, c), k in zip(generator.normal(0, 2, (12, 3)), [0, 1, 2] * 4)]
        data.write_text("cat,dog,cow,label\n" + "\n".join(lines) + "\n")
        calls = {
            "entmax": ["calibrate", "--gamma", "1.3", "--alpha", "0.1", "--alpha", "0.25"],
            "inv-prob": ["calibrate", "--score", "inv_prob", "--masked", "never"],
            "aps": ["calibrate", "--score", "aps", "--seed", "5", "--thresholds-only", "--alpha", "0.2"],
            "raps": ["calibrate", "--score", "raps", "--lambda", "0.1", "--k-reg", "1", "--not-randomized"],
            "saps": ["calibrate", "--score", "saps"],
            "margin": ["calibrate", "--score", "margin"],
            "few": ["calibrate", "--alpha", "0.01"],
            "tuned": ["tune", "--alpha", "0.25"],
        }
        for name, (action, *options) in calls.items():
            model = pathlib.Path(folder) / f"{name}.json"
            subprocess.run([command, action, str(data), *options, "-o", str(model)], check=True, capture_output=True)
            made[name] = json.dumps(json.loads(model.read_text()))
            seed("model", name, made[name])
        seed("model", "pretty", model.read_bytes())
    damaged_models(made)


def damaged_models(command_made):
    """Models that calibration could not have made, one for each reason."""
    tuned, entmax, aps, raps = (json.loads(command_made[name]) for name in ["tuned", "entmax", "aps", "raps"])

    def changed(name, model, **fields):
        seed("model", "damaged-" + name, json.dumps({**model, **fields}))

    def level(**fields):
        return [{**aps["levels"][0], **fields}]

    def doubles(*values):
        return base64.b64encode(struct.pack(f"<{len(values)}d", *values)).decode()

    for name, fields in {
        "format": {"format": "other"}, "version": {"version": 2}, "arithmetic": {"arithmetic": 9},
        "hash": {"row_hash": "other"}, "classes": {"classes": 0}, "names": {"class_names": ["a"]},
        "names-twice": {"class_names": ["a", "a", "b"]}, "n": {"n": 0}, "n-other": {"n": 11},
        "no-levels": {"levels": []}, "level-twice": {"levels": entmax["levels"][:1] * 2},
        "scores-text": {"scores": "?"}, "scores-bytes": {"scores": "AAAA"},
        "scores-nan": {"scores": doubles(*[float("nan")] * 12)}, "scores-zero": {"scores": doubles(*[-0.0] * 12)},
        "scores-order": {"scores": doubles(*range(12, 0, -1))}, "scores-none": {"scores": ""},
        "rows": {"calibrating_rows": "AA"}, "many-rows": {"calibrating_rows": doubles(*range(13))},
        "threshold": {"levels": [{**entmax["levels"][0], "threshold": 9.5}, entmax["levels"][1]]},
    }.items():
        changed(name, entmax, **fields)
    for name, fields in {
        "rank": {"rank": 1}, "infinite": {"threshold": "inf"}, "negative": {"threshold": "-inf"},
        "word": {"threshold": "nan"}, "few": {"alpha": 0.01, "rank": None}, "alpha": {"alpha": 1.5},
    }.items():
        changed("level-" + name, aps, levels=level(**fields))
    half = {**aps["levels"][0], "alpha": 0.5, "rank": 7, "threshold": 0.75}
    changed("order", aps, levels=level(threshold=0.5) + [half])
    changed("draw", aps, score={"name": "aps", "draw": {"seeded": {"scheme": "other", "seed": 1}}})
    changed("no-draw", aps, score={"name": "aps"})
    changed("penalty", raps, score={**raps["score"], "penalty": "fixed"})
    changed("foreign", raps, score={**raps["score"], "gamma": 2})
    changed("unknown", raps, score={"name": "some"})
    changed("top-k", aps, score={"name": "top_k"})
    tuning = tuned["tuning"]
    first, *others = tuning["candidates"]
    for name, fields in {
        "size": {"candidates": [{**first, "average_size": 99}, *others]},
        "threshold": {"candidates": [{**first, "threshold": "inf"}, *others]},
        "chosen": {"chosen": 0}, "score": {"candidates": [{**first, "average_size": 0}, *others], "chosen": 0},
        "rows": {"n": 0}, "paper": {"method": "paper"}, "none": {"candidates": []}, "alpha": {"alpha": 0},
    }.items():
        changed("tuning-" + name, tuned, tuning={**tuning, **fields})


npy_and_npz()
parquet_and_arrow()
csv_and_json()
safetensors()
class_names()
rows()
studies()
if len(sys.argv) > 2:
    models(sys.argv[2])
