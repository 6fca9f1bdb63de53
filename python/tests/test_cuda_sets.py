"""Scores, calibration, sets and probabilities on a CUDA device: byte for byte the CPU's. Without a device there is
nothing to test."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

import conformax  # noqa: E402
from conformax import SplitConformalClassifier, _conformax, _cuda  # noqa: E402
from conformax.torch._rows import rows_of  # noqa: E402
from test_cuda import DTYPES, GAMMAS, GPU, MILLION, is_tight, large  # noqa: E402, F401
from test_cuda import rows as made_rows  # noqa: E402
from test_labels import CASES, FAULTS  # noqa: E402

CLASSES = [1, 2, 3, 10, 15, 16, 17, 33, 100, 512, 513, 1000, 1024, 1025, 3000]


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """What a test draws is the same each time."""
    torch.manual_seed(0)


def rule_of(gamma: float) -> _conformax.Score:
    return _conformax.Score("entmax", gamma=gamma)


def bits(values) -> np.ndarray:
    values = values.cpu().numpy() if isinstance(values, torch.Tensor) else values
    return np.ascontiguousarray(values, dtype=np.float64).reshape(-1).view(np.uint64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_scores_have_the_cpus_bits(dtype: torch.dtype, gamma: float) -> None:
    for classes in CLASSES:
        z = made_rows(200, classes, dtype, classes)
        labels = torch.randint(classes, (200,), device=GPU, generator=torch.Generator(device=GPU).manual_seed(1))
        found = _cuda.score_labels(rule_of(gamma), z, labels)
        wanted = _conformax.score_labels(
            rule_of(gamma), rows_of(z.cpu()), labels.cpu().numpy().astype(np.uint32)
        )
        assert np.array_equal(bits(found), bits(wanted)), classes


@pytest.mark.parametrize("gamma", GAMMAS)
def test_scores_of_all_labels_have_the_cpus_bits(gamma: float) -> None:
    for classes in (1, 10, 100, 513, 1025):
        z = made_rows(16, classes, torch.float32, classes)
        found = _cuda.score_all(rule_of(gamma), z)
        assert np.array_equal(bits(found), bits(_conformax.score_all(rule_of(gamma), rows_of(z.cpu())))), classes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_sets_and_probabilities_are_the_cpus(dtype: torch.dtype, gamma: float) -> None:
    for classes in CLASSES:
        z = made_rows(160, classes, dtype, classes)
        # Thresholds that are scores: labels sit exactly on the boundary.
        scores = np.sort(_conformax.score_labels(
            rule_of(gamma), rows_of(z.cpu()), (np.arange(160) % classes).astype(np.uint32)
        ))  # fmt: skip
        finite = scores[np.isfinite(scores)]
        for threshold in [0.0, 0.5, 3.0, finite[len(finite) // 4], finite[len(finite) // 2], float("inf"), -1.0]:
            offsets, packed = _cuda.find_sets(rule_of(gamma), z, threshold)
            [(cpu_offsets, cpu_packed, *_)] = _conformax.predict(rule_of(gamma), [threshold], rows_of(z.cpu()))
            assert np.array_equal(offsets.cpu().numpy(), cpu_offsets), (classes, threshold)
            assert np.array_equal(packed.cpu().numpy(), cpu_packed.astype(np.int32)), (classes, threshold)
            p = _cuda.probabilities(rule_of(gamma), z, threshold, offsets, packed)
            _, _, cpu_p = _conformax.predict_probabilities(rule_of(gamma), threshold, rows_of(z.cpu()))
            assert np.array_equal(bits(p), bits(cpu_p)), (classes, threshold)


@pytest.mark.parametrize("gamma", [1.0, 1.3, 1.5, 2.0])
def test_wide_rows_have_the_cpus_bits(gamma: float) -> None:
    z = made_rows(24, 128_256, torch.float32, 5)
    # Of rows so tight that all are within reach every label is scored, on either machine: that takes minutes.
    z = z[~is_tight(24)]
    labels = torch.arange(len(z), device=GPU) * 5000
    found = _cuda.score_labels(rule_of(gamma), z, labels)
    host = rows_of(z.cpu())
    assert np.array_equal(bits(found), bits(_conformax.score_labels(
        rule_of(gamma), host, labels.cpu().numpy().astype(np.uint32)
    )))  # fmt: skip
    for threshold in (0.5, 2.0):
        offsets, packed = _cuda.find_sets(rule_of(gamma), z, threshold)
        [(cpu_offsets, cpu_packed, *_)] = _conformax.predict(rule_of(gamma), [threshold], host)
        assert np.array_equal(offsets.cpu().numpy(), cpu_offsets)
        assert np.array_equal(packed.cpu().numpy(), cpu_packed.astype(np.int32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_million_rows_are_scored_as_on_the_cpu(dtype: torch.dtype, gamma: float) -> None:
    for classes, count in MILLION.items():
        z = made_rows(count, classes, dtype, 3)
        if classes > 1000:
            # Of rows so tight that all are within reach every label is scored, on either machine: that takes minutes.
            z = z[~is_tight(count)]
        labels = torch.arange(len(z), device=GPU) * 7919 % classes
        found = _cuda.score_labels(rule_of(gamma), z, labels)
        host = rows_of(z.cpu())
        wanted = _conformax.score_labels(rule_of(gamma), host, labels.cpu().numpy().astype(np.uint32))
        assert np.array_equal(bits(found), bits(wanted)), classes
        finite = wanted[np.isfinite(wanted)]
        # A score among them, so that a label sits on the edge; of wide rows one at which not all labels are within
        # reach.
        threshold = float(np.quantile(finite, 0.4, method="lower"))
        threshold = min(threshold, 3.0 if classes <= 1000 else 0.5)
        offsets, packed = _cuda.find_sets(rule_of(gamma), z, threshold)
        [(cpu_offsets, cpu_packed, *_)] = _conformax.predict(rule_of(gamma), [threshold], host)
        assert np.array_equal(offsets.cpu().numpy(), cpu_offsets), classes
        assert np.array_equal(packed.cpu().numpy(), cpu_packed.astype(np.int32)), classes


@pytest.mark.parametrize("gamma", [1.5, 2.0])
def test_sets_that_are_larger_than_their_room(gamma: float) -> None:
    """More labels than there is room for before they are counted, in sets that no row has too many for."""
    z = torch.randn(5000, 200, device=GPU)
    threshold = 4.0 if gamma == 1.5 else 12.0
    offsets, packed = _cuda.find_sets(rule_of(gamma), z, threshold)
    [(cpu_offsets, cpu_packed, *_)] = _conformax.predict(rule_of(gamma), [threshold], rows_of(z.cpu()))
    assert len(packed) > _cuda._ROOM * len(z) and int(offsets.diff().max()) <= 64
    assert np.array_equal(offsets.cpu().numpy(), cpu_offsets)
    assert np.array_equal(packed.cpu().numpy(), cpu_packed.astype(np.int32))


def test_large_sets_take_the_other_path() -> None:
    z = torch.randn(50, 1000, device=GPU)
    for gamma, threshold in ((1.0, 3.0), (1.5, 30.0), (2.0, 400.0), (1.3, 10.0), (3.0, 1e6)):
        offsets, packed = _cuda.find_sets(rule_of(gamma), z, threshold)
        [(cpu_offsets, cpu_packed, *_)] = _conformax.predict(rule_of(gamma), [threshold], rows_of(z.cpu()))
        assert np.array_equal(offsets.cpu().numpy(), cpu_offsets), gamma
        assert np.array_equal(packed.cpu().numpy(), cpu_packed.astype(np.int32)), gamma
        assert int(offsets.diff().max()) > 64


def data(n: int = 3000, classes: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator(device=GPU).manual_seed(11)
    labels = torch.randint(classes, (n,), device=GPU, generator=generator)
    z = torch.randn((n, classes), device=GPU, generator=generator) * 2
    z[torch.arange(n, device=GPU), labels] += 4
    return z, labels


def test_probabilities_that_are_taken_for_logits_are_pointed_out() -> None:
    z, labels = data()
    p = z.softmax(dim=1)
    with pytest.warns(conformax.ConformaxWarning, match="are taken for logits: give input="):
        SplitConformalClassifier().calibrate(p, labels)
    cp = SplitConformalClassifier().calibrate(z[:1000], labels[:1000])
    with pytest.warns(conformax.ConformaxWarning, match="are taken for logits: if that is what they are, give the"):
        assert cp.predict_set(p).indices.is_cuda
    cp.predict_set(p)  # whoever looks waits for the device, so that is done once


def facts(evaluation: conformax.Evaluation) -> str:
    """All that an evaluation says, to the last bit; NaN is a word here."""
    return repr({name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in evaluation.items()})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("score", ["entmax", "log_margin", "sparsemax"])
def test_calibration_files_are_byte_equal(score: str, dtype: torch.dtype, tmp_path) -> None:
    z, labels = data()
    z = z.to(dtype)
    names = [f"class {k}" for k in range(50)]
    gpu, cpu = SplitConformalClassifier(score, alpha=[0.1, 0.05]), SplitConformalClassifier(score, alpha=[0.1, 0.05])
    gpu.calibrate(z[:1000], labels[:1000])
    cpu.calibrate(z[:1000].cpu(), labels[:1000].cpu())
    gpu.save(tmp_path / "gpu.json")
    cpu.save(tmp_path / "cpu.json")
    assert (tmp_path / "gpu.json").read_bytes() == (tmp_path / "cpu.json").read_bytes()
    for on_gpu, on_cpu in zip(gpu.predict_set(z[1000:]), cpu.predict_set(z[1000:].cpu())):
        assert on_gpu.indices.is_cuda and on_gpu.cpu() == on_cpu
        assert np.array_equal(on_gpu.mask.cpu().numpy(), on_cpu.mask)
        assert np.array_equal(bits(on_gpu.probabilities), bits(on_cpu.probabilities))
        assert np.array_equal(on_gpu.covers(labels[1000:]).cpu().numpy(), on_cpu.covers(labels[1000:].cpu()))
    for on_gpu, on_cpu in zip(gpu.predict_proba(z[1000:]), cpu.predict_proba(z[1000:].cpu())):
        assert on_gpu.is_cuda and np.array_equal(bits(on_gpu), bits(on_cpu))
    assert np.array_equal(bits(gpu.predict_p(z[1000:1100])), bits(cpu.predict_p(z[1000:1100].cpu())))
    for on_gpu, on_cpu in zip(gpu.evaluate(z[1000:], labels[1000:]), cpu.evaluate(z[1000:].cpu(), labels[1000:].cpu())):
        assert facts(on_gpu) == facts(on_cpu)
    named = SplitConformalClassifier(score).calibrate(z[:500], [names[k] for k in labels[:500].tolist()], classes=names)
    assert named.n_calibration_ == 500


def labels_given(labels: list, places: tuple) -> list:
    """The same labels in every form that they may be given in."""
    forms = [labels, np.array(labels, dtype=object), np.array(labels, dtype=object)[:, None]]
    if all(isinstance(label, (int, float)) for label in labels):
        tensors = [torch.tensor(labels, device=place) for place in places]
        forms += [form for tensor in tensors for form in (tensor, tensor[:, None])]
    return forms


@pytest.mark.filterwarnings("ignore::conformax.ConformaxWarning")
@pytest.mark.parametrize("labels, names, labels_are", [case[:3] for case in CASES + FAULTS])
def test_labels_mean_what_they_mean_on_the_cpu(labels: list, names: list | None, labels_are: str | None) -> None:
    """In lists, arrays and tensors of either device; one that is none has the same error."""
    z = torch.randn(len(labels), 3, device=GPU)

    def outcome(z: torch.Tensor, form: object) -> object:
        model = SplitConformalClassifier(alpha=0.5, labels_are=labels_are)
        try:
            model.calibrate(z, form, classes=names)
        except (TypeError, ValueError) as problem:
            return type(problem), str(problem)
        covered = model.predict_set(z.flip(1)).covers(form)
        return model._calibration.to_json(), covered.tolist()

    wanted = outcome(z.cpu(), labels)
    for form in labels_given(labels, (GPU, torch.device("cpu"))):
        assert outcome(z, form) == wanted, form


def test_warns_of_probabilities_as_on_the_cpu() -> None:
    z, labels = data(300, 10)
    for place in (GPU, "cpu"):
        with pytest.warns(conformax.ConformaxWarning, match="taken for logits"):
            SplitConformalClassifier().calibrate(z.softmax(dim=1).to(place), labels.to(place))


def test_one_dimension_is_one_row() -> None:
    z, labels = data(300, 10)
    model = SplitConformalClassifier().calibrate(z, labels)
    assert model.predict_set(z[0]).cpu() == model.predict_set(z[0].cpu())
    for ask in (model.predict_proba, model.predict_p, model.predict):
        assert np.array_equal(ask(z[0]).cpu().numpy(), ask(z[0].cpu()))


@pytest.mark.parametrize("about", [{}, {"masked": "never"}, {"empty": "top_label"}, {"severity": np.linspace(1, 0.5, 50)}])
def test_evaluations_are_the_cpus(about: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted from sets of the device, whose logits stay where they are."""
    z, labels = data()
    model = SplitConformalClassifier(alpha=[0.1, 0.3], **about).calibrate(z[:1000], labels[:1000])
    groups, words = np.arange(2000) % 3, {"strata": [0, 2, 5]}
    asked = [{}, words, {"by": "class"}, {"groups": groups}]
    wanted = [[facts(it) for it in model.evaluate(z[1000:].cpu(), labels[1000:].cpu(), **ask)] for ask in asked]
    # Some rows that calibrated, and all of them.
    mixed = [(z[960:], labels[960:], {}), (z[:1000], labels[:1000], {"allow_seen": True})]
    for rows, truth, ask in mixed:
        with pytest.warns(conformax.ConformaxWarning):
            wanted.append([facts(it) for it in model.evaluate(rows.cpu(), truth.cpu(), **ask)])
    with pytest.raises(ValueError, match="also calibrated or tuned") as cpu:
        model.evaluate(z[:1000].cpu(), labels[:1000].cpu())
    bad = z[1000:].clone()
    bad[7, 3] = torch.nan
    with pytest.raises(ValueError) as of_row:
        model.evaluate(bad.cpu(), labels[1000:].cpu())

    def refused(self: object, logits: object) -> None:
        raise AssertionError("logits went to the host")

    monkeypatch.setattr(SplitConformalClassifier, "_rows", refused)
    found = [[facts(it) for it in model.evaluate(z[1000:], labels[1000:], **ask)] for ask in asked]
    for rows, truth, ask in mixed:
        with pytest.warns(conformax.ConformaxWarning):
            found.append([facts(it) for it in model.evaluate(rows, truth, **ask)])
    assert found == wanted
    for rows, truth, other in ((z[:1000], labels[:1000], cpu), (bad, labels[1000:], of_row)):
        with pytest.raises(ValueError) as gpu:
            model.evaluate(rows, truth)
        assert str(gpu.value) == str(other.value)
    with pytest.raises(ValueError, match="there are 2000 rows of logits but 1999 labels"):
        model.evaluate(z[1000:], labels[1001:])


def test_works_on_the_current_stream() -> None:
    """Logits that are written after a pause on another stream: only work in its order meets them."""
    z, labels = data(2000, 300)
    rule = rule_of(1.5)
    model = SplitConformalClassifier().calibrate(z, labels)

    def calibrated(z: torch.Tensor) -> list:
        return [SplitConformalClassifier().calibrate(z, labels)._calibration.to_json()]

    def predicted(z: torch.Tensor) -> list:
        sets = model.predict_set(z)
        return [sets.offsets.tolist(), sets.indices.tolist(), sets.probabilities.tolist(), sets.covers(labels).tolist()]

    jobs = [
        lambda z: [_cuda.score_labels(rule, z, labels).tolist()],
        lambda z: [_cuda.score_all(rule, z).cpu().numpy().tobytes()],
        lambda z: [it.tolist() for it in _cuda.find_sets(rule, z, 1.0)],
        lambda z: [it.tolist() for it in _cuda.find_sets(rule, z, float("inf"))],
        lambda z: [_cuda.row_fingerprints(rule, z).tolist()],
        lambda z: [model.predict(z).tolist(), model.predict_p(z).tolist()],
        calibrated,
        predicted,
    ]
    stream = torch.cuda.Stream()
    for job in jobs:
        wanted, late = job(z), torch.zeros_like(z)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            late += z
            found = job(late)
        stream.synchronize()
        assert found == wanted


def test_scores_and_sets_of_more_than_two_to_the_31_elements(large: int) -> None:  # noqa: F811
    z = torch.zeros(large, 1024, device=GPU, dtype=torch.bfloat16)
    z[:, 0] = 5.0
    z[-2, 5] = 5.0
    z[-1, 0], z[-1, -1] = 0.0, 9.0
    labels = torch.zeros(large, device=GPU, dtype=torch.int64)
    labels[-2] = 7
    rule = rule_of(1.5)
    scores = _cuda.score_labels(rule, z, labels)
    wanted = _conformax.score_labels(rule, rows_of(z[-2:].cpu()), np.array([7, 0], dtype=np.uint32))
    assert not scores[:-2].any() and np.array_equal(bits(scores[-2:]), bits(wanted))
    offsets, packed = _cuda.find_sets(rule, z, 0.5)
    assert offsets[-4:].tolist() == [large - 3, large - 2, large, large + 1]
    assert (offsets[: large - 1] == torch.arange(large - 1, device=GPU)).all()
    assert not packed[: large - 2].any() and packed[large - 2 :].tolist() == [0, 5, 1023]
    del scores, offsets, packed
    # The last row is known again by itself.
    assert _cuda.row_fingerprints(rule, z)[-1] == _cuda.row_fingerprints(rule, z[-1:])[0]


def test_other_scores_answer_as_on_the_cpu() -> None:
    z, labels = data()
    model = SplitConformalClassifier("raps").calibrate(z[:1000], labels[:1000])
    assert model.predict_set(z[1000:]) == model.predict_set(z[1000:].cpu())


def test_errors_are_the_cpus() -> None:
    z, labels = data(100, 10)
    for place, value, text in ((40, torch.nan, "row 40"), (7, torch.inf, "row 7")):
        bad = z.clone()
        bad[place, 3] = value
        bad[place + 20, 3] = value
        with pytest.raises(ValueError, match=text) as gpu:
            SplitConformalClassifier().calibrate(bad, labels)
        with pytest.raises(ValueError) as cpu:
            SplitConformalClassifier().calibrate(bad.cpu(), labels.cpu())
        assert str(gpu.value) == str(cpu.value)
        model = SplitConformalClassifier().calibrate(z, labels)
        with pytest.raises(ValueError, match=text):
            model.predict_set(bad)
    wrong = labels.clone()
    wrong[9] = 10
    with pytest.raises(ValueError, match="label at row 9 is 10"):
        SplitConformalClassifier().calibrate(z, wrong)
    masked = z.clone()
    masked[5, labels[5]] = -torch.inf
    with pytest.raises(ValueError) as gpu:
        SplitConformalClassifier(masked="never").calibrate(masked, labels)
    with pytest.raises(ValueError) as cpu:
        SplitConformalClassifier(masked="never").calibrate(masked.cpu(), labels.cpu())
    assert str(gpu.value) == str(cpu.value)
    model = SplitConformalClassifier().calibrate(z, labels)
    with pytest.raises(ValueError, match="wanted 10 classes, got 9"):
        model.predict_set(z[:, :9])


def test_top_labels_are_the_cpus() -> None:
    z, labels = data(500, 10)
    z[3, 7] = z[3, 2] = z[3].max() + 1
    model = SplitConformalClassifier().calibrate(z, labels)
    top = model.predict(z)
    assert top.is_cuda and np.array_equal(top.cpu().numpy(), model.predict(z.cpu())) and top[3] == 2
    names = [f"class {k}" for k in range(10)]
    named = SplitConformalClassifier().calibrate(z, [names[k] for k in labels.tolist()], classes=names)
    assert named.predict(z).tolist() == named.predict(z.cpu()).tolist()
    bad = z.clone()
    bad[4, 1] = torch.nan
    with pytest.raises(ValueError) as gpu:
        model.predict(bad)
    with pytest.raises(ValueError) as cpu:
        model.predict(bad.cpu())
    assert str(gpu.value) == str(cpu.value)


@pytest.mark.parametrize("package", ["cupy", "jax"])
def test_arrays_of_other_packages(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What speaks DLPack is read where it lies; answers are tensors, which speak it too."""
    # Other tests of this machine want some of the device's memory too.
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    pytest.importorskip(package)
    z, labels = data(300, 10)
    other_z, other_labels = z.flip(1).contiguous(), 9 - labels
    if package == "cupy":
        import cupy

        arrays, others = ([cupy.from_dlpack(it) for it in pair] for pair in ((z, labels), (other_z, other_labels)))
    else:
        import jax

        read = jax.dlpack.from_dlpack
        arrays, others = ([read(it) for it in pair] for pair in ((z, labels), (other_z, other_labels)))
    ours, theirs = SplitConformalClassifier().calibrate(z, labels), SplitConformalClassifier().calibrate(*arrays)
    assert ours.threshold_ == theirs.threshold_
    sets = theirs.predict_set(arrays[0])
    assert sets.indices.is_cuda and torch.equal(sets.indices, ours.predict_set(z).indices)
    assert torch.equal(theirs.predict_proba(arrays[0]), ours.predict_proba(z))
    assert torch.equal(theirs.predict(arrays[0]), ours.predict(z))
    assert theirs.evaluate(*others).coverage == ours.evaluate(other_z, other_labels).coverage
    other = SplitConformalClassifier("raps").calibrate(*arrays)
    assert other.threshold_ == SplitConformalClassifier("raps").calibrate(z, labels).threshold_
    if package == "cupy":
        assert np.array_equal(cupy.from_dlpack(sets.indices).get(), sets.indices.cpu().numpy())


def test_golden_scores(golden: dict) -> None:
    for case in golden["scores"]:
        z = torch.tensor([[float(z) for z in case["logits"]]], device=GPU)
        found = _cuda.score_all(rule_of(case["gamma"]), z)[0].cpu().numpy()
        np.testing.assert_allclose(found, [float(s) for s in case["scores"]], rtol=1e-12, atol=0)
        for at in case["at"]:
            _, packed = _cuda.find_sets(rule_of(case["gamma"]), z, float(at["q"]))
            assert sorted(packed.tolist()) == at["set"], case["row"]
    for case in golden["boundary"]:
        z = torch.tensor([[float(z) for z in case["logits"]]], device=GPU)
        _, packed = _cuda.find_sets(rule_of(case["gamma"]), z, float(case["q"]))
        assert sorted(packed.tolist()) == sorted(case["set"]), case
    assert conformax.__version__


def test_strided_rows_are_the_same_rows() -> None:
    z, labels = data(400, 60)
    rule = rule_of(1.5)
    for strided in (z[:, ::2], z[::3], z.t().contiguous().t(), z[:, 5:45], z[:1].expand(7, 60)):
        assert not strided.is_contiguous()
        dense, truth = strided.contiguous(), torch.arange(len(strided), device=GPU) % strided.shape[1]
        assert np.array_equal(
            bits(_cuda.score_labels(rule, strided, truth)), bits(_cuda.score_labels(rule, dense, truth))
        )
        assert np.array_equal(bits(_cuda.score_all(rule, strided)), bits(_cuda.score_all(rule, dense)))
        for found, wanted in zip(_cuda.find_sets(rule, strided, 1.0), _cuda.find_sets(rule, dense, 1.0)):
            assert torch.equal(found, wanted)
        assert np.array_equal(_cuda.row_fingerprints(rule, strided), _cuda.row_fingerprints(rule, dense))
    model = SplitConformalClassifier().calibrate(z.t().contiguous().t(), labels)
    assert model.threshold_ == SplitConformalClassifier().calibrate(z, labels).threshold_


def test_no_rows_have_no_sets() -> None:
    z, labels = data(400, 60)
    rule, none = rule_of(1.5), z[:0]
    assert _cuda.score_labels(rule, none, labels[:0]).shape == (0,)
    assert _cuda.score_all(rule, none).shape == (0, 60)
    assert _cuda.row_fingerprints(rule, none).shape == (0,)
    for threshold in (1.0, -1.0, float("inf")):
        offsets, packed = _cuda.find_sets(rule, none, threshold)
        assert offsets.tolist() == [0] and packed.shape == (0,)
    model = SplitConformalClassifier().calibrate(z, labels)
    sets = model.predict_set(none)
    assert len(sets) == 0 and sets.cpu() == model.predict_set(none.cpu())
    assert sets.mask.shape == (0, 60) and sets.probabilities.shape == (0,)
    assert model.predict_proba(none).shape == (0, 60) and model.predict_p(none).shape == (0, 60)
    with pytest.raises(ValueError) as gpu:
        SplitConformalClassifier().calibrate(none, labels[:0])
    with pytest.raises(ValueError) as cpu:
        SplitConformalClassifier().calibrate(none.cpu(), labels[:0].cpu())
    assert str(gpu.value) == str(cpu.value)
