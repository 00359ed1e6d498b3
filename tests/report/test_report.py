"""The report: its structure, that strangers' text stays text, what it refuses, and what it warns of."""

import json
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import softmargin
from softmargin import LinearSVC, LinearSVCCV, LinearSVR, RankSVM
from softmargin.core.errors import SoftmarginError
from softmargin.core.status import Status
from softmargin.metrics.measures import Case, class_measures
from softmargin.report import measured
from softmargin.report.as_html import json_inside_a_script
from softmargin.report.data_warnings import data_notes, row_hashes
from softmargin.report.document import Charts, Facts, Table
from softmargin.report.model_report import report
from softmargin.report.training import _TO_CHANGE

EVIL = '</script><script>alert("x")</script><b>&|`*'
SECTIONS = ["convergence", "margins", "weights", "path", "measures", "data", "cost", "repeat"]
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """Which elements there are, that they are nested well, and the text of each script."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.scripts, self.ids = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200, :6], y[:200]


@pytest.fixture(scope="module")
def model(cancer):
    return LinearSVC(solver="coordinate").fit(*cancer)


def blocks(found, name, kind):
    (section,) = (each for each in found.document.sections if each.name == name)
    return [block for block in section.blocks if isinstance(block, kind)]


def test_the_page_is_whole_and_loads_nothing(model, cancer):
    page = Page(model.report(*cancer).html)
    assert [attributes["id"] for tag, attributes in page.elements if tag == "section"] == SECTIONS
    assert len(page.ids) == len(set(page.ids))
    for tag, attributes in page.elements:
        assert not attributes.get("src"), tag
        assert attributes.get("href", "#").startswith(("#", "data:")), tag
        assert attributes.get("aria-labelledby", "main") in page.ids
    links = [attributes["href"][1:] for tag, attributes in page.elements if tag == "a"]
    assert set(links) <= set(page.ids)
    assert {"main", "nav", "header", "footer", "h1", "caption", "noscript"} <= {tag for tag, _ in page.elements}
    charts = json.loads(page.scripts[0])
    assert len(charts) == sum(tag == "figure" for tag, _ in page.elements) >= 5
    for chart in charts:
        assert all(len(line["values"]) == len(chart["x"]) for line in chart["lines"])
        assert chart["x"] == sorted(chart["x"])


def test_support_vectors_are_told_apart_on_training_rows_only(model, cancer):
    X, y = cancer
    (charts,) = blocks(model.report(X, y), "margins", Charts)
    assert charts.charts[0].lines[0].name == "bounded support vectors"
    assert sum(sum(line.values) for line in charts.charts[0].lines) == len(y)
    (charts,) = blocks(model.report(X[:50], y[:50]), "margins", Charts)
    assert [line.name for line in charts.charts[0].lines] == ["rows"]
    assert sum(charts.charts[0].lines[0].values) == 50


def test_names_and_labels_of_strangers_stay_text(cancer):
    X, y = cancer
    labels = np.where(y, EVIL, "!")
    model = LinearSVC(solver="coordinate").fit(X, labels)
    found = report(model, X, labels, feature_names=[f"{EVIL}{k}" for k in range(X.shape[1])], command=EVIL)
    page = Page(found.html)
    assert sum(tag == "script" for tag, _ in page.elements) == 3
    assert "alert" in page.scripts[0]
    assert "alert" not in page.scripts[2]
    shown = [line for line in found.markdown.splitlines() if not line.startswith("    ")]  # code is shown as it is
    assert not [line for line in shown if "<" in line.replace("\\<", "")]
    assert any("</script><script>" in line["name"] for chart in json.loads(page.scripts[0]) for line in chart["lines"])


def test_json_cannot_end_its_script():
    text = json_inside_a_script(["</script>", "<!--", "]]>", "\u2028", "&lt;"])
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == ["</script>", "<!--", "]]>", "\u2028", "&lt;"]


def test_markdown_has_the_same_sections(model, cancer, tmp_path):
    found = model.report(*cancer)
    found.save(tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        section.title for section in found.document.sections
    ]
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("| ")]
    assert len(tables) > 10
    for table in tables:
        assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert str(Status.OPTIMAL) in text


def test_a_file_that_is_there_is_refused(model, cancer, tmp_path):
    path = tmp_path / "report.html"
    found = model.report(*cancer).save(path)
    with pytest.raises(SoftmarginError, match="is there already"):
        found.save(path)
    path.write_text("old")
    found.save(path, overwrite=True)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(SoftmarginError, match="is a folder"):
        found.save(tmp_path)


def test_what_cannot_be_reported_is_told(model, cancer):
    X, y = cancer
    with pytest.raises(SoftmarginError, match="no rows to report on"):
        model.report(X[:0], y[:0])
    with pytest.raises(SoftmarginError, match="3 labels for 200 rows"):
        model.report(X, y[:3])
    with pytest.raises(SoftmarginError, match="not fitted yet"):
        LinearSVC().report(X, y)


@pytest.mark.parametrize("labels", [["a", "b"], [7, 8]])
def test_classes_that_the_model_does_not_know(model, cancer, labels):
    X, y = cancer
    found = model.report(X, np.array(labels)[y])
    assert "is a class of the model" in found.markdown
    assert found.html


def test_one_class_of_two_in_the_data(model, cancer):
    X, y = cancer
    text = model.report(X[y == 1], y[y == 1]).markdown
    assert "do not occur in these data" in text
    assert "curves need two" in text


def test_a_report_without_labels(model, cancer):
    assert "nothing can be measured" in model.report(cancer[0]).markdown


def test_a_page_of_bounded_size_for_500_classes_and_100_000_features():
    rng = np.random.default_rng(0)
    classes = np.array([f"class {k}" for k in range(500)])
    y = classes[rng.integers(500, size=3000)]
    predicted, scores = classes[rng.integers(500, size=3000)], rng.normal(size=(3000, 500))
    case = Case(y, predicted, scores, classes)
    found = measured.blocks_of(case, class_measures(case))
    assert all(len(block.rows) <= measured.CLASSES for block in found if isinstance(block, Table))
    X = csr_array((np.ones(400), (np.arange(400) % 40, rng.integers(100_000, size=400))), shape=(40, 100_000))
    model = LinearSVC(solver="coordinate").fit(X, np.arange(40) % 2)
    assert len(model.report(X, np.arange(40) % 2).html) < 250_000


def test_a_model_of_500_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 5)), np.arange(1000) % 500
    model = LinearSVC(solver="coordinate", max_iter=1, tol=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    found = model.report(X, y)
    assert "The 50 largest of 500 classes" in found.markdown
    assert "Curves of the 5 largest classes" in found.markdown
    assert len(found.html) < 300_000


def test_labels_that_the_model_does_not_know_count_as_errors(model, cancer):
    X, y = cancer
    changed = y.copy()
    changed[:10] = 7
    text = model.report(X, changed).markdown
    assert "10 of 200 rows have labels that the model does not know, such as 7" in text
    assert f"{np.mean(model.predict(X) == changed):.2%}" in text


def test_labels_that_are_no_numbers(cancer):
    X, y = cancer
    model = LinearSVR(tol=0.1).fit(X, y)
    assert "Nothing can be measured: the labels are not numbers" in model.report(X, np.array(["no", "yes"])[y]).markdown


def test_a_ranking_without_pairs(cancer):
    X, y = cancer
    assert "Nothing can be measured: all y are 1" in RankSVM(tol=0.1).fit(X, y).report(X, np.ones(len(y))).markdown


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_told_with_their_row(model, cancer, storage, bad):
    X, y = cancer
    changed = X.copy()
    changed[7, 2] = bad
    with pytest.raises(SoftmarginError, match="Input X contains NaN or infinity, first in row 8"):
        model.report(storage(changed), y)
    numbers = LinearSVR(tol=0.1).fit(X, y)
    targets = y.astype(float)
    targets[3] = bad
    with pytest.raises(SoftmarginError, match="Input y contains NaN or infinity, first in row 4"):
        numbers.report(X, targets)


def test_a_pipeline_that_fills_holes_is_reported_with_a_warning(cancer):
    X, y = cancer
    X = X.copy()
    X[7, 2] = np.nan
    found = report(make_pipeline(SimpleImputer(), LinearSVC(solver="coordinate")).fit(X, y), X, y)
    assert "1 column has values that are not finite (NaN or infinity): feature 2" in found.html
    assert "Accuracy" in found.markdown


def test_a_pipeline_and_a_search(cancer):
    X, y = cancer
    pipeline = make_pipeline(StandardScaler(), LinearSVC(solver="coordinate")).fit(X, y)
    found = report(pipeline, X, y)
    assert "the pipeline before the model scales them" in " ".join(found.html.split())
    (charts,) = blocks(found, "margins", Charts)
    assert len(charts.charts[0].lines) == 3
    search = LinearSVCCV(Cs=[0.1, 1.0], cv=2).fit(X, y)
    (charts,) = blocks(search.report(X, y), "path", Charts)
    assert [chart.title for chart in charts.charts] == ["Score", "Support vectors"]


def test_a_fit_that_was_stopped_says_what_to_change(cancer):
    model = LinearSVC(solver="coordinate", max_iter=1, tol=1e-9)
    with pytest.warns(UserWarning, match="gap"):
        model.fit(*cancer)
    document = model.report(*cancer).document
    assert document.level == "bad"
    assert "Raise max_iter" in document.verdict


@pytest.mark.parametrize(
    "kind", ["LinearSVR", "SVR", "SVC", "LinearSVC", "RankSVM", "OneClassSVM", "LinearOneClassSVM", "OrdinalSVC"]
)
def test_every_estimator_has_a_report(kind):
    X = np.random.default_rng(0).normal(3.0, 1.0, size=(30, 3))
    y = None if "One" in kind else np.arange(30) % 3
    model = getattr(softmargin, kind)().fit(X, y)
    found = model.report(X, y)
    assert [section.name for section in found.document.sections] == SECTIONS
    assert Page(found.html)
    assert model.status_.name in model._repr_html_()


def test_every_ending_has_its_advice():
    assert set(_TO_CHANGE) == set(Status)


def test_the_notebook_shows_status_gap_and_a_picture(model):
    html = model._repr_html_()
    assert "OPTIMAL" in html
    assert f"relative gap {model.certificate_.relative_gap:.3g}" in html
    assert 'role="img"' in html
    assert model._repr_mimebundle_()["text/html"]
    assert "OPTIMAL" not in LinearSVC()._repr_html_()


# --- warnings about data --------------------------------------------------------------------------------------------


def notes(X, y, **options):
    names = [f"column {k}" for k in range(X.shape[1])]
    return " ".join(note.text for note in data_notes(X, y, names, has_classes=True, **options))


@pytest.fixture
def clean():
    rng = np.random.default_rng(1)
    return rng.normal(size=(100, 4)), rng.permutation(np.arange(100) % 2)


def as_dense(X):
    return X


@pytest.mark.parametrize("storage", [as_dense, csr_array])
def test_troubles_in_data_are_found(clean, storage):
    X, y = clean
    assert "nothing suspicious" in notes(storage(X), y)

    def with_column(values):
        changed = X.copy()
        changed[:, 2] = values
        return storage(changed)

    assert "wild scales: the values of column 2" in notes(with_column(X[:, 2] * 1e5), y)
    assert "1 column has the same value in every row, which tells nothing apart: column 2. Leave it out." in notes(
        with_column(3.0), y
    )
    assert "column 2: whole numbers that differ" in notes(with_column(np.random.default_rng(0).permutation(100)), y)
    assert "tells the label nearly alone: column 2" in notes(with_column(y * 1.0), y)
    twice = X.copy()
    twice[7], others = twice[3], y.copy()
    others[3], others[7] = 0, 1
    assert "2 rows have a duplicate with another label" in notes(storage(twice), others)
    rare = np.zeros(100, dtype=int)
    rare[:2] = 1
    assert "out of balance: 1 class is rare; class 1 has 2 of 100 rows" in notes(storage(X), rare)


def test_hashes_of_rows_do_not_depend_on_storage():
    X = np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0], [-0.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    stored_zero = csr_array((np.array([0.0, 1.0, 2.0]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 3))
    dense, sparse = row_hashes(X), row_hashes(csr_array(X))
    assert dense.tolist() == sparse.tolist()
    assert dense[0] == dense[2] == row_hashes(stored_zero)[0]
    assert len(set(dense.tolist())) == 3


def test_of_large_data_a_part_is_looked_at(clean, monkeypatch):
    monkeypatch.setattr("softmargin.report.data_warnings.ENTRIES", 100)
    assert "25 evenly spaced of 100 rows" in notes(*clean)


def test_of_a_class_without_rows_nothing_is_said(model, cancer):
    X, y = cancer
    (table, *_) = blocks(model.report(X[y == 1], y[y == 1]), "measures", Table)
    assert table.rows[-1] == ["0", None, None, None, 0]


def test_numbers_as_text_are_numbers(cancer):
    X, y = cancer
    model = LinearSVR(tol=0.1).fit(X, y)
    found = model.report(X, y.astype(str))
    assert [each.facts for each in blocks(found, "measures", Facts)] == [
        each.facts for each in blocks(model.report(X, y), "measures", Facts)
    ]
    assert len(blocks(found, "measures", Charts)) == 1


def test_measures_by_hand():
    classes, y = np.array([0, 1]), np.array([0, 0, 1, 1])
    case = Case(y, np.array([0, 1, 1, 1]), np.array([-2.0, 1.0, 0.5, 3.0]), classes)
    found = measured.blocks_of(case, class_measures(case))
    table = next(block for block in found if isinstance(block, Table))
    assert table.rows == [["0", 1.0, 0.5, pytest.approx(2 / 3), 2], ["1", pytest.approx(2 / 3), 1.0, 0.8, 2]]
    (roc, precision, _) = found[-1].charts
    assert "0.7500" in roc.summary
    assert roc.lines[0].values[0] == pytest.approx(0.5)
    assert precision.lines[0].values[-1] == pytest.approx(2 / 3)
