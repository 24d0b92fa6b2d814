"""What the recorded results answer: one line under each chapter's title and in the landing
page's table, and that page's picture.

A Sphinx extension: the sources stay as they are, the answers and the pages of tools.pages
are put in while the site is built. What is not recorded is not answered.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from tools import instructor, pages
from utils import plots, preflight
from utils.ratio import Ratio
from utils.recorded import load, numbers, release
from utils.report import memory, ratio, seconds

PICTURE = Path(__file__).resolve().parent.parent / "_build" / "headline.png"
MARK = "<!-- made when the site is built -->"
PART = "<!-- made when the site is built: %s -->"  # one of several in a page
MACHINE = "reference"
SCOREBOARD = "chapters/99_scoreboard"  # the page that is replaced as a whole


def yes_or_no(found: Ratio) -> str:
    """Does it pay? The verdict's word as an answer."""
    return {"faster": "Yes", "slower": "No"}.get(found.word, "No clear difference")


# --- facts of one recorded file: None when they are not in it ----------------------------


def result(data, name):
    """A recorded result by name."""
    return data["chapters"].get(name[:2], {}).get("results", {}).get(name)


def speedup(data, name, entry):
    """Of an entry of a recorded comparison, against its baseline."""
    r = (result(data, name) or {"ratios": {}})["ratios"].get(entry)
    return r and Ratio(**r)


def recorded_rows(data, name):
    """The rows recorded under a name; none where nothing is."""
    return (result(data, name) or {"rows": []})["rows"]


def deepest(data):
    """The row of the deepest model in the sweep of cold starts."""
    found = result(data, "20.cold_depth")
    return found and max(found["rows"], key=lambda row: row["layers"])


def cold_start(data):
    row = deepest(data)
    return row and of_row(row)


def cases(data):
    """The cases of chapter 30, the one with the highest lower end first."""
    found = result(data, "30.cases")
    return found and sorted(found["rows"], key=lambda row: -row["low"])


def best_case(data):
    rows = cases(data)
    return rows and of_row(rows[0])


def window(data):
    """Compiled FlexAttention against the faster of the two dense masks."""
    flex = speedup(data, "50.window_4096", "flex, compiled")
    other = speedup(data, "50.window_4096", "SDPA, bool mask")  # the additive mask is the baseline
    if not (flex and other):
        return None
    return Ratio(flex.value / max(1, other.value), flex.low / max(1, other.high), flex.high / max(1, other.low))


def eight_numbers(data):
    return speedup(data, "00.tiny", "compiled")


def hooks_in_the_graph(data):
    return speedup(data, "60.hooks", "one backward")


def next_token(data):
    return speedup(data, "45.next_token", "max-autotune")


def longest(data):
    """(row of flash, row of math) over the longest sequence of chapter 10."""
    rows = recorded_rows(data, "10.by_length")
    last = [row for row in rows if row["length"] == max(r["length"] for r in rows)]
    pair = [row for name in ("flash", "math") for row in last if row["backend"] == name]
    return pair if len(pair) == 2 else None


def of_row(row):
    return Ratio(row.get("ratio", row.get("value")), row["low"], row["high"])


# --- one line a chapter -------------------------------------------------------------------


def answer_00(data):
    compiled = (result(data, "00.steady") or {"entries": {}})["entries"].get("compiled")
    if not (compiled and compiled["first_call_s"]):
        return None
    return ("Is a stopwatch around one call enough?",
            f"{'No' if compiled['first_call_s'] > 2 * compiled['median_s'] else 'Yes'}: the first compiled call took "
            f"{seconds(compiled['first_call_s'])}, later ones {seconds(compiled['median_s'])}, which is "
            f"{ratio(speedup(data, '00.steady', 'compiled'))} as fast as eager.")


def answer_10(data):
    pair = longest(data)
    if not pair:
        return None
    flash, math = pair
    return ("Does the choice of kernel pay on a laptop?",
            f"{yes_or_no(of_row(flash))}, also without cuDNN: over {flash['length']} tokens flash runs "
            f"{ratio(of_row(flash))} as fast as math, with {memory(flash['peak_bytes'])} of memory instead of "
            f"{memory(math['peak_bytes'])}.")


def answer_20(data):
    row = deepest(data)
    return row and ("Does it pay on a laptop?",
                    f"{yes_or_no(cold_start(data))}, at the first call: with {row['layers']} layers it takes "
                    f"{seconds(row['regional_s'])} with one block compiled, {seconds(row['whole_s'])} as a whole model.")


def answer_30(data):
    rows = cases(data)
    if not rows:
        return None
    faster, slower = (sum(row["word"] == word for row in rows) for word in ("faster", "slower"))
    return ("Does it pay on a laptop?",
            f"{'Mostly' if 2 * faster > len(rows) else 'Sometimes'}: {faster} of {len(rows)} cases run faster "
            f"compiled and {slower} slower; the best is {rows[0]['case']}, {ratio(best_case(data))} as fast as eager.")


def answer_35(data):
    large, tiny = (speedup(data, f"35.{size}", "compiled") for size in ("large", "tiny"))
    return large and tiny and (
        "Does the kernel that Windows would run pay?",
        f"{yes_or_no(large)}, for a million numbers: {ratio(large)} as fast as eager; for eight it is {ratio(tiny)}.")


def answer_40(data):
    rows = [row for row in recorded_rows(data, "40.operators") if row["dtype"] == "float16"]
    if not rows:
        return None
    faster, slower = (sum(row["word"] == word for row in rows) for word in ("faster", "slower"))
    product = next(row for row in rows if row["operator"] == "matmul")
    return ("Does it pay on a laptop?",
            f"{'Mostly' if 2 * faster > len(rows) else 'Seldom'}, on this CPU: {faster} of {len(rows)} operators run "
            f"faster in float16 and {slower} slower; a matrix product runs {ratio(of_row(product))} as fast.")


def answer_45(data):
    means = [row for row in recorded_rows(data, "45.shapes") if row["shape"] == "geometric mean"]
    found = next_token(data)
    return found and means and (
        "Does it pay on a laptop?",
        f"{yes_or_no(found)}, for the next token of a small decoder: it comes {ratio(found)} as fast as with Inductor's "
        f"default; over a list of matrix products the mean is {ratio(of_row(means[0]))}.")


def answer_50(data):
    found = window(data)
    return found and ("Does it pay on a laptop?",
                      f"{yes_or_no(found)}, when compiled and the mask is sparse: a sliding window over 4096 tokens runs "
                      f"{ratio(found)} as fast as with the faster dense mask.")


def answer_60(data):
    hooked, plain = hooks_in_the_graph(data), speedup(data, "60.step", "one backward")
    return hooked and plain and (
        "Does it pay on a laptop?",
        f"{yes_or_no(hooked)}, for a step whose hooks work on the gradients: it runs {ratio(hooked)} as fast as eager; "
        f"a small step without hooks runs {ratio(plain)} as fast.")


def answer_70(data):
    found = speedup(data, "70.overhead_number", "on")
    return found and ("What does it cost?",
                      f"Summing one number over two ranks runs {ratio(found)} as fast with the recorder on.")


def answer_80(data):
    found = result(data, "80.import")
    return found and ("What does it cost?",
                      f"A program that only imports torch takes {seconds(found['entries']['no backend']['median_s'])} "
                      f"without a backend and {seconds(found['entries']['five backends']['median_s'])} with five that "
                      "do nothing.")


def answer_90(data):
    by_device = {}
    for row in recorded_rows(data, "90.step_by_batch"):
        by_device.setdefault(row["device"], []).append(row)
    if not by_device.keys() & {"own", "xpu"}:
        return None
    device = "xpu" if "xpu" in by_device else "own"
    first, last = by_device[device][0], by_device[device][-1]
    where = {"xpu": "on an Intel GPU", "own": "even on a device that PyTorch does not know"}[device]
    return ("Does one program run everywhere?",
            f"Yes, {where}: with {last['batch']} sequences a training step there runs {ratio(of_row(last))} as fast as on "
            f"the CPU, with {first['batch']} it runs {ratio(of_row(first))} as fast.")


def answer_95(data):
    starts = {row["start"]: row for row in recorded_rows(data, "95.starts")}
    if not {"empty folder", "full folder"} <= set(starts):
        return None
    cold, warm = (starts[name]["first_call_s"] for name in ("empty folder", "full folder"))
    return ("Does the cache pay on a laptop?",
            f"{yes_or_no(Ratio(*[cold / warm] * 3))}, from the second start on: the first call takes {seconds(warm)} "
            f"instead of {seconds(cold)}.")


ANSWERS = {ask.__name__[-2:]: ask for ask in (
    answer_00, answer_10, answer_20, answer_30, answer_35, answer_40, answer_45, answer_50, answer_60, answer_70, answer_80,
    answer_90, answer_95)}


def answers(files) -> dict[str, tuple[str, str, str]]:
    """Chapter -> (question, answer, where it was measured), from the reference machine's newest
    torch that has one."""
    found = {}
    for data in files:
        for chapter, ask in ANSWERS.items():
            if data["machine"] == MACHINE and (said := ask(data)):
                where = f"{data['provenance']['cores']} cores, {data['provenance']['cpu']}, torch {release(data)}"
                found[chapter] = (*said, where)
    return found


def under_title(question, answer, where) -> str:
    return (f'<p class="answer"><strong>{question}</strong> {escape(answer)} '
            f"<small>({escape(where)})</small></p>")


def in_table(chapter, said) -> str:
    """What a chapter's row of the landing page says below the question: the answer, if one is
    recorded, and the minutes."""
    minutes = f"{chapter['reading']} min to read, {chapter['exercises']} min of exercises"
    return "".join(f"<br><small>{escape(line)}</small>" for line in (*([" ".join(said[:2])] if said else []), minutes))


# --- the picture ----------------------------------------------------------------------------

HEADLINES = {
    "first call of a deep model:\nwhole / one block compiled": cold_start,
    "best Inductor case:\neager / compiled": best_case,
    "window attention:\ndense mask / FlexAttention": window,
    "next token of a decoder:\nInductor's default / max-autotune": next_token,
    "step with gradient hooks:\neager / backward in one graph": hooks_in_the_graph,
    "one addition of eight numbers:\neager / compiled": eight_numbers,
}


def headline(files):
    """(figure, alt text) of what the reference machine measured, or None."""
    bars = {f"{what}, {release(data)}": (found.value, found.low, found.high)
            for what, ask in HEADLINES.items() for data in files
            if data["machine"] == MACHINE and (found := ask(data))}
    if not bars:
        return None
    newest = max((release(data) for data in files if data["machine"] == MACHINE), key=numbers)
    figure = plots.bars(bars, title="How many times as fast?", unit="ratio of times", line=1, log=True,
                        colours=["feature" if name.endswith(newest) else "baseline" for name in bars])
    alt = "Bars of measured ratios of times: " + "; ".join(
        f"{name.replace(chr(10), ' ')}: {value:.2f}" for name, (value, _, _) in bars.items()) + "."
    return figure, alt


def headline_markdown(files) -> str:
    """Draws the picture; returns the Markdown that shows it."""
    made = headline(files)
    if made is None:
        return "*Nothing is recorded yet: `make record NAME=my-laptop` fills this place.*"
    picture = plots.png(made[0])
    if not PICTURE.exists() or PICTURE.read_bytes() != picture:  # Sphinx asks when it was written
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(picture)
    return f"![{made[1]}](_build/{PICTURE.name})"


# --- the extension ----------------------------------------------------------------------------


def additions(docnames, files) -> dict[str, str | dict[str, str]]:
    """Page -> what is put into it; of a page with several places, by their names."""
    said = answers(files)
    rows = {number: in_table(chapter, said.get(number)) for number, chapter in preflight.chapters().items()}
    return {"index": {"picture": headline_markdown(files), **rows}, "chapters/corrections": pages.corrections(files),
            "chapters/since": pages.since(), "chapters/instructor": instructor.parts(),
            SCOREBOARD: pages.executed_scoreboard(),
            **{name: under_title(*said[found[1]]) for name in docnames
               if (found := re.match(r"chapters/(\d\d)_", name)) and found[1] in said}}


def find_outdated(app, env, added, changed, removed):
    """Pages whose addition is another one than when they were last read."""
    before, env.book_additions = getattr(env, "book_additions", {}), additions(env.found_docs, load())
    return [name for name in env.found_docs if before.get(name) != env.book_additions.get(name)]


def put_in(app, docname, source):
    addition = app.env.book_additions.get(docname, "")
    if docname == SCOREBOARD:
        source[0] = addition
    elif isinstance(addition, dict):
        for name, part in addition.items():
            source[0] = source[0].replace(PART % name, part)
    elif MARK in source[0]:
        source[0] = source[0].replace(MARK, addition)
    elif addition:
        notebook = json.loads(source[0])
        title = notebook["cells"][0]
        heading, _, rest = "".join(title["source"]).partition("\n")
        title["source"] = f"{heading}\n\n{addition}\n{rest}"
        source[0] = json.dumps(notebook)


def setup(app):
    app.connect("env-get-outdated", find_outdated)
    app.connect("source-read", put_in)
    return {"parallel_read_safe": True}
