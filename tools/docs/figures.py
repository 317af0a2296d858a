"""figures.py - the page of figures over time: of each machine what each release reached (tests/results/releases.json, which
`tools/performance --release` writes) and what the tree's own results reach."""
import html
import json
import re
import statistics

WORDS = {"en": {"head": ("release", "date", "commit", "cases", "median of limit", "ahead", "level", "behind", "time beside the one before"),
                "tree": "tree", "of": "operation, median of limit", "same": "Not measured since that release.",
                "chart": "Median of limit of each operation, by release"},
         "zh": {"head": ("版本", "日期", "提交", "案例数", "极限的中位数", "领先", "持平", "落后", "与前一版本的时间比"),
                "tree": "当前代码", "of": "操作，极限的中位数", "same": "该版本之后没有重新测量。", "chart": "各版本中每种操作占极限的中位数"}}
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e", "#9a6700", "#57606a", "#1b7c83")


def chip_of(meta):
    """The processor's name, where a virtual machine only says "AMD EPYC": from the results, or from the tuning row they name."""
    detail = meta.get("devices", {}).get("cpu", {}).get("detail", "")
    return meta.get("cpu", {}).get("chip") or ("Zen 4" if "zen4" in detail else "")


def short_name(name):
    """A processor's name without its marks and its clock."""
    return " ".join(re.sub(r"\((R|TM)\)|\bProcessor\b|@.*", " ", name).split())


def point(data, one_limit):
    """What a results file says, in short: who measured when, and of each case its time, its part of the limit and the verdict beside peers."""
    one_limit(data["benchmarks"])
    rows = {r["name"]: [float(f"{r['median_ms']:.4g}"), round(r["fraction"], 3), r.get("verdict", "")]
            for r in data["benchmarks"] if r["source"] == "lockstep" and r.get("fraction")}
    meta = data["meta"]
    name = ", ".join(short_name(d["name"]) for d in meta["devices"].values()) + (f" ({chip_of(meta)})" if chip_of(meta) else "")
    threads = f", {meta['threads']} thread{'s' if meta['threads'] > 1 else ''}" if meta.get("threads") else ""
    return {"machine": name + threads, "date": meta["date"][:10], "commit": meta["commit"][:12], "rows": rows}


def now(root, one_limit):
    """The points of the tree's own results, by file."""
    paths = [p for p in sorted((root / "tests/results").glob("readme-*.json")) if not p.stem.endswith("-cold")]
    return {p.stem: made for p in paths if (made := point(json.loads(p.read_text()), one_limit))["rows"]}


def releases(root):
    """{release: {file: point}}, in the order of their releases."""
    path = root / "tests/results/releases.json"
    return json.loads(path.read_text()) if path.exists() else {}


def with_release(root, version, one_limit):
    """The text of releases.json with the tree's results as those of a release, a line for each machine."""
    kept = {**releases(root), version: now(root, one_limit)}
    parts = [json.dumps(name) + ": {\n" + ",\n".join(f"{json.dumps(stem)}: {json.dumps(one)}" for stem, one in of.items()) + "\n}" for name, of in kept.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def history(root, stem, one_limit, tree):
    """(release, point) of a machine, the oldest first; the tree's own where it was measured again."""
    found = [(name, of[stem]) for name, of in releases(root).items() if stem in of]
    own = now(root, one_limit).get(stem)
    return found + ([(tree, own)] if own and (not found or own["commit"] != found[-1][1]["commit"]) else [])


def by_op(one):
    ops = {}
    for name, (_, fraction, _) in one["rows"].items():
        ops.setdefault(name.split("/")[0], []).append(fraction)
    return {op: statistics.median(of) for op, of in ops.items()}


def row(label, one, before):
    """A release's row of the table; `before` is the point that it is compared with."""
    verdicts = [verdict for _, _, verdict in one["rows"].values() if verdict]
    shared = [one["rows"][case][0] / before["rows"][case][0] for case in one["rows"] if case in before["rows"]] if before else []
    return [label, one["date"], f"`{one['commit']}`", str(len(one["rows"])), f"{statistics.median(r[1] for r in one['rows'].values()):.2f}",
            *(str(verdicts.count(word)) if verdicts else "" for word in ("ahead", "level", "behind")), f"{statistics.median(shared):.2f}" if shared else ""]


def chart(points, words):
    """A line for each operation over the releases: an SVG for both themes."""
    width, height, left, top = 480, 200, 36, 12
    ops = sorted({op for _, one in points for op in by_op(one)})
    step = (width - left - 130) / max(len(points) - 1, 1)
    of_y = lambda fraction: top + (1 - min(fraction, 1)) * (height - top - 24)
    out = [f'<line class="grid" x1="{left}" x2="{width - 124}" y1="{of_y(v):.0f}" y2="{of_y(v):.0f}"/><text x="0" y="{of_y(v) + 4:.0f}">{v:.1f}</text>' for v in (0, 0.5, 1)]
    out += [f'<text x="{left + k * step:.0f}" y="{height - 4}">{html.escape(label)}</text>' for k, (label, _) in enumerate(points)]
    for k, op in enumerate(ops):
        at = [(left + n * step, of_y(by_op(one)[op])) for n, (_, one) in enumerate(points) if op in by_op(one)]
        colour = COLOURS[k % len(COLOURS)]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.0f},{y:.1f}" for x, y in at)}"/>')
        out += [f'<circle cx="{x:.0f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in at]
        out.append(f'<rect x="{width - 110}" y="{top + 18 * k}" width="10" height="10" fill="{colour}"/><text x="{width - 96}" y="{top + 9 + 18 * k}">{html.escape(op)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {max(height, top + 18 * len(ops))}" width="{width}" role="img" aria-label="{words["chart"]}">\n'
            "<style>text { font: 12px sans-serif; fill: #222 } .grid { stroke: #d0d7de } @media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444c56 } }</style>\n"
            + "\n".join(out) + "\n</svg>\n")


def table(root, language, performance, pictures=None):
    """Markdown: a section for each machine, its releases from the newest on; the charts go into `pictures`."""
    out, words, one_limit = [], WORDS[language], performance.under_one_limit
    for stem in sorted({stem for of in releases(root).values() for stem in of} | set(now(root, one_limit))):
        points = history(root, stem, one_limit, words["tree"])
        rows = [row(label, one, points[k - 1][1] if k else None) for k, (label, one) in enumerate(points)]
        ops = sorted({op for _, one in points for op in by_op(one)})
        out += [f"## {points[-1][1]['machine']} (`{stem}.json`)", ""]
        if pictures:
            (pictures / f"over_time_{stem}.svg").write_text(chart(points, words))
            out += [f"![{words['chart']}](pictures/over_time_{stem}.svg)", ""]
        out += ["| " + " | ".join(words["head"]) + " |", "|---|---|---|--:|--:|--:|--:|--:|--:|", *("| " + " | ".join(r) + " |" for r in reversed(rows)), ""]
        out += [f"| {words['of']} | " + " | ".join(label for label, _ in points) + " |", "|---|" + "--:|" * len(points)]
        out += [f"| {op} | " + " | ".join(f"{by_op(one)[op]:.2f}" if op in by_op(one) else "" for _, one in points) + " |" for op in ops]
        out += ["", *([words["same"], ""] if points[-1][0] != words["tree"] else [])]
    return "\n".join(out)
