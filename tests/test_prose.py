"""No measured number in a chapter's text, and one sentence a line."""

import pytest

from tools import chapters, prose


@pytest.mark.parametrize("path", chapters.find(), ids=lambda p: p.stem)
def test_the_chapters_hold_no_measured_numbers(path):
    found = [f"{cell.id}: {number}" for cell in chapters.read(path).cells if cell.cell_type == "markdown"
             for number in prose.measured_numbers(cell.source)]
    assert not found, f"{path.name} holds numbers that no run made:\n" + "\n".join(found)


@pytest.mark.parametrize("text, found", [
    ("It takes 12 s.", "12 s"), ("It takes 1.5ms here.", "1.5ms"), ("about 3 seconds", "3 seconds"),
    ("after 10 minutes of tuning", "10 minutes"), ("5 µs a call", "5 µs"), ("uses 580 MB", "580 MB"),
    ("4 GiB are enough", "4 GiB"), ("reaches 329 TFLOP/s", "329 TFLOP/s"), ("at 12 GB/s", "12 GB/s"),
    ("wins in 97.5 % of them", "97.5 %"), ("7% faster", "7%"), ("it is 1.5x faster", "1.5x"),
    ("a gain of 7×.", "7×"), ("a 3-fold gain", "3-fold"), ("1,200 ms", "1,200 ms"), ("40 tokens/s", "40 tokens/s"),
    ("three times faster", "times faster"), ("ten times as slow", "times as slow"), ("Twice the memory", None),
    ("it needs twice the memory", "twice"), ("in half the time", "half"), ("| a | 12 ms |", "12 ms"),
    ("- 12 ms a call", "12 ms"), ("| x | 15 minutes reading, 3 ms a call |", "3 ms"),
    ("### Exercise 20.1: Save 12 s", "12 s"), ("as `torch.compile` says, 12 s", "12 s"),
])
def test_what_is_found(text, found):
    assert prose.measured_numbers(text) == ([found] if found else ["Twice"])


@pytest.mark.parametrize("text", [
    "torch 2.5.1 or newer, since 2.6 also on a CPU", "a model of 12 layers and 4 heads", "512×512 and 64 x 64 tensors",
    "an interval of 95 % and a margin of 3 %", "`12 ms` is code", "```\ntook 12 s\n```", "half-precision and half precision",
    "issue #151, 504 contributors", "sm_90", "an x86 CPU with AVX512", "two s's", "exercise 3, step 2 in chapter 20",
    "| you know | 15 minutes reading + 12 minutes exercises |", "### Exercise 20.1: Count the frames (6 min)",
    "the claim of 7 % (`maxautotune.geomean`)", "[tuning](https://example.org/12%20ms)", "S = 256, D = 64",
    "1. Set it up", "the interval 0.95 to 1.40 holds 1",
])
def test_what_is_allowed(text, monkeypatch):
    monkeypatch.setattr(prose.claims, "load", lambda: {"maxautotune.geomean": {}})
    assert prose.measured_numbers(text) == []


@pytest.mark.parametrize("text", [
    "One sentence. Another one.", "Really? Yes.", "It ends (here). The next begins.", "Look at `x`. `y` is next.",
    "- An item. And more.", "1. First. Second.", "It is 2.5. The next is 2.6.", "A **bold end.** Then more.",
    "A sentence that goes on\nin the next line.", "- an item that goes on\n  below.", "He said \"no.\" Then he left.",
])
def test_lines_that_are_not_one_sentence(text):
    assert len(prose.sentence_faults(text)) == 1


@pytest.mark.parametrize("text", [
    "One sentence.\nAnother one.", "Look at the version, e.g. `2.5` or torch 2.5.1.", "See i.e. This is one.",
    "# A title. With two parts", "| a cell. And more | b. C |", "```\nx = 1. Y\nz\n```", "<details><summary>A. B</summary>",
    "- an item\n- another item", "1. First\n2. Second", "It says:\n- this\n- that", "Paragraph\n\nanother",
    "Wait ... it runs.", "A. Turing said so.", "[a link](https://a.b/c. D)", "It works!\n\n```\na\n```", "",
])
def test_lines_that_are(text):
    assert prose.sentence_faults(text) == []
