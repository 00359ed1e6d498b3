"""softmargin report: the page of a model file and a data file."""


def test_report(run, cancer, tmp_path):
    model, out = tmp_path / "model", tmp_path / "report.html"
    run("train", cancer, model, "--solver", "coordinate", "-q")
    printed = run("report", model, cancer, "-o", out).output
    assert "verdict" in printed
    text = out.read_text(encoding="utf-8")
    assert "free support vectors" in text
    assert f"softmargin report {model} {cancer} -o {out}" in text
    again = run("report", model, cancer, "-o", out, code=1).output
    assert "is there already" in again
    assert "--force" in again
    run("report", model, cancer, "-o", out, "--force")
    run("report", model, cancer, "-o", tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# LinearSVC model\n")
    assert run("report", model, cancer, "-o", "-").output.startswith("<!DOCTYPE html>")


def test_what_report_refuses(run, cancer, tmp_path):
    model, empty = tmp_path / "model", tmp_path / "empty.svm"
    run("train", cancer, model, "--solver", "coordinate", "-q")
    empty.write_text("")
    assert "the file is empty" in run("report", model, empty, "-o", tmp_path / "r.html", code=1).output
    assert "is a folder" in run("report", model, cancer, "-o", tmp_path, code=1).output
    assert not (tmp_path / "r.html").exists()
    other = tmp_path / "other.svm"
    other.write_text("7 1:1\n8 2:1\n")
    run("report", model, other, "-o", tmp_path / "r.html")
    assert "is a class of the model" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_model_with_scaling_and_calibration(run, cancer, tmp_path):
    model, out = tmp_path / "model", tmp_path / "report.html"
    run("train", cancer, model, "--solver", "coordinate", "--scale", "standard", "--probability", "sigmoid", "-q")
    run("report", model, cancer, "-o", out)
    text = out.read_text(encoding="utf-8")
    assert "free support vectors" in text
    assert "ROC curve" in text
    assert ">Calibration</h3>" in text
