"""Every way logits may arrive gives the same sets, and wrong ones are refused with their place."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import conformax
from conformax import SplitConformalClassifier


@pytest.fixture
def calibrated(rows):
    return SplitConformalClassifier().calibrate(*rows)


def layouts(logits: np.ndarray) -> dict[str, np.ndarray]:
    n, k = logits.shape
    padded = np.full((2 * n, 3 * k), np.nan, dtype=logits.dtype)
    padded[::2, 1::3] = logits
    unaligned = np.frombuffer(b"x" + logits.tobytes(), dtype=np.uint8)[1:].view(logits.dtype).reshape(n, k)
    return {
        "contiguous": logits,
        "fortran": np.asfortranarray(logits),
        "strided": padded[::2, 1::3],
        "rows apart": np.repeat(logits, 2, axis=0)[::2],
        "reversed": logits[::-1, ::-1].copy()[::-1, ::-1],
        "unaligned": unaligned,
        "swapped": logits.astype(logits.dtype.newbyteorder(">")),
        "read-only": np.frombuffer(logits.tobytes(), dtype=logits.dtype).reshape(n, k),
    }


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_any_layout_of_any_width(rows, calibrated, kind):
    logits = rows[0].astype(kind)
    wanted = calibrated.predict_set(rows[0])
    for name, array in layouts(logits).items():
        assert np.array_equal(array, logits), name
        assert calibrated.predict_set(array) == wanted, name


def test_bfloat16_of_ml_dtypes(rows, calibrated):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    narrow = rows[0].astype(ml_dtypes.bfloat16)
    assert calibrated.predict_set(narrow) == calibrated.predict_set(narrow.astype(np.float32))
    assert calibrated.predict_set(narrow[:, ::-1]) == calibrated.predict_set(narrow[:, ::-1].astype(np.float32))


def test_lists_and_integers(calibrated):
    wanted = calibrated.predict_set(np.arange(20.0).reshape(2, 10))
    assert calibrated.predict_set(np.arange(20).reshape(2, 10)) == wanted
    assert calibrated.predict_set(np.arange(20).reshape(2, 10).tolist()) == wanted
    assert calibrated.predict_set(np.arange(20, dtype=np.uint16).reshape(2, 10)) == wanted


def test_pandas(rows, calibrated):
    pd = pytest.importorskip("pandas")
    wanted = calibrated.predict_set(rows[0])
    frame = pd.DataFrame(rows[0])
    assert calibrated.predict_set(frame) == wanted
    assert calibrated.predict_set(frame.astype({0: np.float64})) == wanted
    assert calibrated.predict_set(frame.astype("Float64")) == wanted
    with pytest.warns(conformax.ConformaxWarning, match="also calibrated"):
        assert calibrated.evaluate(frame, pd.Series(rows[1]), allow_seen=True).n == 600
    with pytest.raises(ValueError, match="row 3, class 2 is NaN"):
        calibrated.predict_set(frame.astype("Float64").mask((frame.index == 3)[:, None] & (frame.columns == 2)))
    with pytest.raises(TypeError, match="real numbers"):
        calibrated.predict_set(frame.astype(str))


def test_blocks_of_a_frame_join_and_name_the_row(rows, calibrated, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr("conformax._inputs._BLOCK", 10 * 7)
    wanted = calibrated.predict_set(rows[0])
    frame = pd.DataFrame(rows[0])
    assert calibrated.predict_set(frame) == wanted
    assert np.array_equal(conformax.scores(frame), conformax.scores(rows[0]))
    assert np.array_equal(calibrated.predict_p(frame), calibrated.predict_p(rows[0]))
    assert np.array_equal(calibrated.predict_proba(frame), calibrated.predict_proba(rows[0]))
    frame.iloc[500, 4] = np.inf
    with pytest.raises(ValueError, match="row 500, class 4 is inf"):
        calibrated.predict_set(frame)


def test_polars(rows, calibrated):
    pl = pytest.importorskip("polars")
    wanted = calibrated.predict_set(rows[0])
    frame = pl.DataFrame(rows[0])
    assert calibrated.predict_set(frame) == wanted
    assert calibrated.predict_set(pl.Series(rows[0])) == wanted
    with pytest.raises(TypeError, match="collect it first"):
        calibrated.predict_set(frame.lazy())


def test_arrow(rows, calibrated):
    pa = pytest.importorskip("pyarrow")
    wanted = calibrated.predict_set(rows[0])
    for kind in (np.float16, np.float32, np.float64):
        flat = pa.array(rows[0].astype(kind).ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, 10)
        assert calibrated.predict_set(lists) == wanted
        assert calibrated.predict_set(lists[200:]) == wanted[200:]
        assert calibrated.predict_set(pa.chunked_array([lists[:250], lists[250:]])) == wanted
    table = pa.table({str(k): rows[0][:, k] for k in range(10)})
    assert calibrated.predict_set(table) == wanted
    assert calibrated.predict_set(table.to_batches()[0]) == wanted
    with pytest.raises(TypeError, match="fixed-size list"):
        calibrated.predict_set(pa.array([[1.0], [2.0]]))
    with pytest.raises(ValueError, match="nulls"):
        calibrated.predict_set(pa.array([[1.0] * 10, None], type=pa.list_(pa.float64(), 10)))


@pytest.mark.peers
def test_torch(rows, calibrated):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(rows[0])
    wanted = calibrated.predict_set(rows[0])
    for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        narrow = tensor.to(kind)
        expected = wanted if kind != torch.bfloat16 else calibrated.predict_set(narrow.float())
        assert calibrated.predict_set(narrow) == expected
        assert calibrated.predict_set(narrow.requires_grad_()) == expected
    assert calibrated.predict_set(tensor.T.contiguous().T) == wanted
    with pytest.warns(conformax.ConformaxWarning, match="also calibrated"):
        assert calibrated.evaluate(tensor, torch.from_numpy(rows[1]), allow_seen=True).n == 600


def test_one_dimension_is_one_row(rows, calibrated):
    logits, labels = rows
    assert calibrated.predict_set(logits[0]) == calibrated.predict_set(logits[:1])
    assert calibrated.predict_set(logits[0].tolist()) == calibrated.predict_set(logits[:1])
    assert np.array_equal(conformax.scores(logits[0]), conformax.scores(logits[:1]))
    assert np.array_equal(conformax.scores(logits[0], labels[0]), conformax.scores(logits[:1], labels[:1]))
    with pytest.raises(TypeError, match="must be an array of rows and classes, got generator$"):
        calibrated.predict_set(row for row in logits)
    with pytest.raises(TypeError, match="got csr_matrix; a sparse matrix is made one by .toarray"):
        calibrated.predict_set(pytest.importorskip("scipy.sparse").csr_matrix(logits))
    with pytest.raises(ValueError, match="wanted 10 classes, got 9"):
        calibrated.predict_set(logits[0, :9])


@pytest.mark.peers
def test_one_dimension_of_a_tensor_is_one_row(rows, calibrated):
    torch = pytest.importorskip("torch")
    for kind in (torch.float32, torch.bfloat16):
        row = torch.from_numpy(rows[0][0]).to(kind)
        assert calibrated.predict_set(row) == calibrated.predict_set(row.unsqueeze(0))


def test_masked_entries_are_refused_with_their_place(rows, calibrated):
    logits, labels = rows
    hidden = np.ma.masked_array(logits, mask=np.zeros(logits.shape, dtype=bool))
    assert calibrated.predict_set(hidden) == calibrated.predict_set(logits)
    hidden[3, 4] = np.ma.masked
    for call in (calibrated.predict_set, calibrated.predict_p, conformax.scores, conformax.softmax):
        with pytest.raises(ValueError, match=r"the entry at \(3, 4\) is masked"):
            call(hidden)
    with pytest.raises(ValueError, match=r"the entry at \(7,\) is masked"):
        SplitConformalClassifier().calibrate(logits, np.ma.masked_array(labels, mask=np.arange(600) == 7))
    with pytest.raises(ValueError, match="is masked"):
        conformax.coverage_rate(np.ma.masked_array(logits > 0, mask=logits > 3), labels)


def frames(logits: np.ndarray, names: list) -> dict:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns = {str(name): logits[:, place] for place, name in enumerate(names)}
    return {"pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns), "arrow": pa.table(columns)}


def test_columns_of_a_frame_are_known_by_name(rows):
    for needed in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(needed)
    logits, labels = rows
    names, other = list("abcdefghij"), list("jabcdefghi")
    wanted = SplitConformalClassifier().calibrate(logits, labels).predict_set(logits)
    moved = frames(logits[:, [9, *range(9)]], other)
    for kind, frame in frames(logits, names).items():
        cp = SplitConformalClassifier().calibrate(frame, labels)
        for other_kind, frame in moved.items():
            assert cp.predict_set(frame) == wanted, (kind, other_kind)
        assert cp.predict_set(logits) == wanted
        for frame in frames(logits, [*names[:9], "z"]).values():
            with pytest.raises(ValueError, match="'j' was there at calibration and is missing here; 'z' was not"):
                cp.predict_set(frame)
    named = SplitConformalClassifier().calibrate(logits, np.array(names)[labels], classes=names)
    for kind, frame in moved.items():
        assert named.predict_set(frame) == wanted, kind
    # Names that have nothing to do with the classes' say nothing about their order.
    assert named.predict_set(frames(logits, range(10))["polars"]) == wanted


def test_counted_columns_are_known_by_number(rows):
    pd = pytest.importorskip("pandas")
    logits, labels = rows
    frame = pd.DataFrame(logits)
    cp = SplitConformalClassifier().calibrate(frame, labels)
    assert cp.predict_set(frame[list(range(9, -1, -1))]) == cp.predict_set(logits)
    assert cp.predict_set(frame.rename(columns=str)) == cp.predict_set(logits)
    with pytest.raises(ValueError, match="two columns 3"):
        cp.predict_set(frame.rename(columns={4: 3}))


@pytest.mark.parametrize("column", ["label", "labels", "Unnamed: 0"])
def test_a_column_that_is_no_class_is_refused(rows, column):
    logits, labels = rows
    for kind, frame in frames(np.column_stack([logits, labels]), [*"abcdefghij", column]).items():
        with pytest.raises(ValueError, match=f"column '{column}' would be a class"):
            SplitConformalClassifier().calibrate(frame, labels)


@pytest.mark.parametrize("column", ["id", "Index", "idx", "row", "customer_id"])
def test_identifiers_are_no_class_unless_they_are_named(rows, column):
    logits, labels = np.rint(rows[0]), rows[1]
    names = [*"abcdefghij", column]
    ids = np.arange(len(labels)) * 7919 % 100_003
    # Logits are whole numbers too, as a quantised model gives them: it is the name that tells.
    for kind, frame in frames(np.column_stack([logits, ids]), names).items():
        with pytest.raises(ValueError, match=f"column '{column}' holds whole numbers and would be a class"):
            SplitConformalClassifier().calibrate(frame, labels)
        with pytest.raises(ValueError, match=f"column '{column}'"):
            SplitConformalClassifier(input="log_probabilities").calibrate(frame, labels)
        named = SplitConformalClassifier().calibrate(frame, labels, classes=names)
        assert named.predict_set(frame).n_classes == 11, kind
    # Fractions identify nothing: there are languages called so.
    for frame in frames(np.column_stack([logits, rows[0][:, 0] + 0.25]), names).values():
        SplitConformalClassifier().calibrate(frame, labels)


def test_probabilities_that_are_taken_for_logits_are_pointed_out_everywhere(rows, tmp_path, monkeypatch):
    logits, labels = rows
    p = np.exp(logits.astype(np.float64))
    p /= p.sum(axis=1, keepdims=True)
    cp = SplitConformalClassifier().calibrate(logits[:300], labels[:300])
    told = "not negative and sum to 1, as probabilities do, and are taken for logits"
    for held in (cp.predict_set, cp.predict_proba, cp.predict_p, cp.predict, lambda p: cp.evaluate(p, labels)):
        with pytest.warns(conformax.ConformaxWarning, match=f"{told}: if that is what they are, give the logits"):
            held(p)
    for given in (
        lambda: conformax.compare(p, labels, splits=2),
        lambda: SplitConformalClassifier().tune(p, labels),
        lambda: conformax.label_weights(p, labels, logits),
    ):
        with pytest.warns(conformax.ConformaxWarning, match=told):
            given()
    records = conformax.compare(p, labels, splits=2, input="probabilities")
    assert len(records) == len(conformax.compare(logits, labels, splits=2))
    # One row that is none is enough to know better.
    cp.predict_set(np.vstack([p[:50], logits[:1]]))
    np.savez(tmp_path / "p.npz", logits=p, labels=labels)
    study = "splits = 2\nlevels = [0.2]\n[[benchmarks]]\npath = 'p.npz'\n"
    (tmp_path / "study.toml").write_text(study)
    with pytest.warns(conformax.ConformaxWarning, match="the rows of p are not negative and sum to 1"):
        conformax.study(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_text(study + "input = 'probabilities'\n")
    conformax.study(tmp_path / "study.toml")
    # On a GPU they are looked at before anything is launched, at prediction once.
    monkeypatch.setattr("conformax._cuda.on_gpu", lambda *_: True)
    monkeypatch.setattr("conformax._cuda.checked_rows", lambda rows, classes=None: rows)
    monkeypatch.setattr("conformax._cuda.sets_of", lambda *_: ["sets"])
    with pytest.raises(conformax.ConformaxWarning, match=told):
        SplitConformalClassifier().calibrate(p, labels)
    with pytest.warns(conformax.ConformaxWarning, match=told):
        assert cp.predict_set(p) == "sets"
    assert cp.predict_set(p) == "sets"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda z: z.__setitem__((3, 4), np.nan), "logit at row 3, class 4 is NaN: wanted a finite number"),
        (lambda z: z.__setitem__((3, 4), np.inf), "logit at row 3, class 4 is inf"),
        (lambda z: z.__setitem__(5, -np.inf), "every logit of row 5 is -inf"),
    ],
)
def test_bad_values_are_named_with_their_place(rows, calibrated, spoil, message):
    logits = rows[0].copy()
    spoil(logits)
    for call in (calibrated.predict_set, calibrated.predict_proba, calibrated.predict_p, calibrated.predict,
                 conformax.scores, conformax.softmax):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call(logits)


def test_the_first_bad_row_is_named_whatever_the_threads(calibrated):
    logits = np.zeros((300_000, 10), dtype=np.float32)
    logits[[120_000, 299_999], 3] = np.nan
    for _ in range(5):
        with pytest.raises(ValueError, match="row 120000, class 3"):
            calibrated.predict_set(logits)


def test_wrong_shapes_and_types_say_what_was_wanted(rows, calibrated):
    logits, labels = rows
    with pytest.raises(ValueError, match="two dimensions, rows and classes, got 3"):
        calibrated.predict_set(logits[np.newaxis])
    with pytest.raises(ValueError, match="wanted 10 classes, got 9"):
        calibrated.predict_set(logits[:, :9])
    with pytest.raises(ValueError, match="there are 600 rows of logits but 599 labels"):
        SplitConformalClassifier().calibrate(logits, labels[:-1])
    with pytest.raises(ValueError, match="label at row 2 is 10, but with 10 classes labels lie in 0..10"):
        SplitConformalClassifier().calibrate(logits[:3], [0, 1, 10])
    with pytest.raises(ValueError, match="one dimension, a class per row, got 2"):
        SplitConformalClassifier().calibrate(logits, np.eye(10)[labels])
    with pytest.raises(ValueError, match="label at row 0 is .*, which is not a whole number"):
        SplitConformalClassifier().calibrate(logits, labels + 0.5)
    with pytest.raises(TypeError, match="real numbers of at most 64 bits, got complex64"):
        calibrated.predict_set(logits.astype(np.complex64))
    with pytest.raises(ValueError, match="calibration needs at least one row, got none"):
        SplitConformalClassifier().calibrate(logits[:0], labels[:0])
    assert len(calibrated.predict_set(logits[:0])) == 0
    with pytest.raises(ValueError, match="metrics need at least one row"):
        calibrated.evaluate(logits[:0], labels[:0])


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"alpha": 0}, ValueError, "alpha must lie strictly between 0 and 1, got 0"),
        ({"alpha": 1.5}, ValueError, "alpha must lie strictly between 0 and 1, got 1.5"),
        ({"alpha": "many"}, ValueError, "alpha must be a number or a decimal string, got 'many'"),
        ({"alpha": float("nan")}, ValueError, "alpha must be a number or a decimal string, got nan"),
        ({"alpha": [0.1, None]}, TypeError, "alpha must be a number or a decimal string, got None"),
        ({"alpha": True}, TypeError, "alpha must be a number or a decimal string, got True"),
        ({"alpha": object()}, TypeError, "alpha must be a number"),
        ({"alpha": []}, ValueError, "at least one level"),
        ({"confidence_level": 1.0}, ValueError, "confidence must lie strictly between 0 and 1"),
        ({"confidence_level": "a"}, ValueError, "confidence_level must be a number or a decimal string, got 'a'"),
        ({"pac": 0}, ValueError, "pac must lie strictly between 0 and 1, got 0"),
        ({"pac": 1}, ValueError, "pac must lie strictly between 0 and 1, got 1"),
        ({"pac": "a"}, ValueError, "pac must be a number or a decimal string, got 'a'"),
        ({"pac": True}, TypeError, "pac must be a number or a decimal string, got True"),
        ({"gamma": "a"}, TypeError, "gamma must be a number, got 'a'"),
        ({"gamma": True}, TypeError, "gamma must be a number, got True"),
        ({"gamma": [1.5]}, TypeError, r"gamma must be a number, got \[1.5\]"),
        ({"gamma": np.array([1.5])}, TypeError, "gamma must be a number, got array"),
        ({"score": conformax.EntmaxScore(None)}, TypeError, "gamma must be a number, got None"),
        ({"score": "raps", "lambda_": "a"}, TypeError, "lambda_ must be a number, got 'a'"),
        ({"score": conformax.SapsScore("a")}, TypeError, "lambda_ must be a number, got 'a'"),
        ({"score": "raps", "k_reg": "a"}, TypeError, "k_reg must be a whole number, got 'a'"),
        ({"score": "raps", "k_reg": 2.5}, TypeError, "k_reg must be a whole number, got 2.5"),
        ({"score": "raps", "k_reg": -1}, ValueError, r"k_reg must lie between 0 and 2\*\*32 - 1, got -1"),
        ({"score": conformax.RapsScore(k_reg=None)}, TypeError, "k_reg must be a whole number, got None"),
        ({"score": "raps", "randomized": "a"}, TypeError, "randomized must be True or False, got 'a'"),
        ({"alpha": 0.2, "confidence_level": 0.9}, ValueError, "alpha or confidence_level, not both"),
        ({"gamma": 0.5}, ValueError, "gamma must lie between 1 and 16, got 0.5"),
        ({"score": "softmax"}, ValueError, 'no score is called "softmax"; there are entmax'),
        ({"score": 3}, TypeError, "score must be a name or a score object, got int"),
        ({"score": "lac", "gamma": 1.5}, ValueError, "the score inv_prob takes no gamma, got 1.5"),
        ({"score": conformax.EntmaxScore(), "gamma": 1.5}, ValueError, "gamma belongs to the score object"),
        ({"score": "raps", "lambda_": -1.0}, ValueError, "lambda must be finite and not negative"),
        ({"masked": "perhaps"}, ValueError, 'masked must be "allowed" or "never"'),
    ],
)
def test_bad_parameters_are_refused_at_calibration(rows, params, error, message):
    with pytest.raises(error, match=message):
        SplitConformalClassifier(**params).calibrate(*rows)


def test_numbers_of_any_library_are_parameters(rows):
    wanted = SplitConformalClassifier("raps", lambda_=0.5, k_reg=2).calibrate(*rows).threshold_
    for lambda_ in (np.float32(0.5), np.array(0.5), Fraction(1, 2), Decimal("0.5")):
        cp = SplitConformalClassifier("raps", lambda_=lambda_, k_reg=np.int64(2), alpha=np.float32(0.1))
        assert cp.calibrate(*rows).threshold_ == wanted
    with pytest.raises(TypeError, match="gamma must be a number, got None"):
        SplitConformalClassifier().tune(*rows, grid=[1.5, None])
    with pytest.raises(TypeError, match="k_reg must be a whole number, got 'a'"):
        SplitConformalClassifier("raps").tune(*rows, over="k_reg", grid=["a"])
    with pytest.raises(TypeError, match="gamma must be a number, got 'a'"):
        conformax.entmax([1.0, 2.0], gamma="a")
    with pytest.raises(TypeError, match="delta must be a number, got 'a'"):
        conformax.pac_rank(99, 0.1, "a")


def test_uncalibrated_classifiers_raise_sklearns_error_or_its_look_alike(rows, monkeypatch):
    cp = SplitConformalClassifier()
    with pytest.raises(conformax.NotFittedError if not _has_sklearn() else _sklearns(), match="not calibrated"):
        cp.predict_set(rows[0])
    monkeypatch.setitem(__import__("sys").modules, "sklearn.exceptions", None)
    for use in (lambda: cp.predict_set(rows[0]), lambda: cp.threshold_, lambda: cp.n_calibration_):
        with pytest.raises(conformax.NotFittedError, match="call `calibrate`"):
            use()
    # As scikit-learn's own, it is caught by those who catch either.
    assert issubclass(conformax.NotFittedError, ValueError) and issubclass(conformax.NotFittedError, AttributeError)


def _has_sklearn() -> bool:
    try:
        import sklearn.exceptions  # noqa: F401
    except ImportError:
        return False
    return True


def _sklearns() -> type[Exception]:
    from sklearn.exceptions import NotFittedError

    return NotFittedError
