"""Entries of the command line, in this process: what is typed, not what is parsed."""

from __future__ import annotations

from torture.fuzz.calls import Pool, either, entry, filled, one, real, whole
from torture.fuzz.entries.files import text

ROWS = "".join(f"u{row % 6},i{row // 6},{(row * 7) % 3 % 2}\n" for row in range(30))
_SOUND = one(f"written('l.csv', {('user,item,rating' + chr(10) + ROWS).encode()!r})")
_LOG: Pool = either(*[_SOUND] * 8, lambda random: f"written('l.csv', {text(random)!r})", one("FOLDER / 'none.csv'"))
_SCORES = "".join(f"u{row % 6},i{row // 6},0.{row % 9 + 1}\n" for row in range(30))
_SOUND_SCORES = f"['a=' + str(written('s.csv', {('user,item,score' + chr(10) + _SCORES).encode()!r}))]"
_PREDICTIONS = either(
    *[one(_SOUND_SCORES)] * 5,
    filled("['a=' + str(written('s.npy', npy(np.full((6, 5), {value}))))]", value=one(".5", "1", "7", "nan")),
    one("['a']", "['=x']", "['a=none.csv']"),
)
_ASKED = one(
    "written('q.csv', b'user,item,true_label\\n' + b''.join(b'u%d,i%d,%d\\n' % (n % 6, n // 6, n * 7 % 3 % 2) for n in range(30)))",
    "written('q.csv', b'user,item,true_label\\nu0,i0,1\\nu1,i0,0\\n')",
    "written('q.csv', b'user,item,true_label,kind\\nu0,i0,1,random\\nu1,i0,0,logged\\n')",
    "FOLDER / 'none.csv'",
)
_READ = {
    "positive_from": one("1", ".5", "1", "1", "1", "'x'"),
    "user": one("'user'", "'user'", "'user'", "'u'"),
    "delimiter": one("','", "','", "','", "'\\\\t'", "'ab'"),
    "duplicates": one("'first'", "'last'", "'highest'", "'x'"),
    "timestamp": one("'rating'", "'rating'", "'t'"),
}
_NOISE = {"audit": _ASKED, "survey": _ASKED}
_RATES = {"rho01": real(0, 0.4), "rho10": real(0, 0.4)}
_HOW = {
    "loss": one("'log'", "'squared'", "'absolute'", "'x'"),
    "confidence": one(".9", ".5", ".99", "'a'"),
    "clip": one(".01", ".01", ".1", "2"),
    "sample": one("5", "5", "9", "-1"),
    "seed": one("0", "3", "7", "7", "-1", "10**30"),
    "propensity": one("'logistic'", "'constant'", "'popularity'", "'popularity'", "'logged'"),
}
_OUT = one(
    "FOLDER / 'out'",
    "FOLDER / 'out'",
    "FOLDER / 'out'",
    "FOLDER / 'a' / 'b'",
    "FOLDER / 'é'",
    "written('file', b'')",
    "''",
    "'/dev/null/x'",
)
_SET = one(
    *["['dim=1', 'epochs=1']"] * 4,
    "['dim=2', 'epochs=2', 'solver=gradient']",
    "['dim=x']",
    "['epochs']",
    "['=1']",
    "['nothing=1', 'epochs=1']",
)

ENTRIES = [
    entry(
        "verb('estimate')",
        {"_log": _LOG, "predictions": _PREDICTIONS},
        _READ
        | _NOISE
        | _HOW
        | {
            "json": one("True"),
            "k": whole(0, 7),
            "ranking_only": one("True"),
            "calibrate": one("'platt'", "'isotonic'"),
            "region": one("True"),
            "interval": one("'delta'", "'bootstrap'"),
            "estimators": one("'all'", "'dr,ips'", "''"),
        },
        weight=1,
    ),
    entry(
        "verb('plan')",
        {
            "_log": _LOG,
            "out": one("FOLDER / 'plan.csv'", "FOLDER / 'b' / 'p.csv'", "FOLDER / 'plan.csv'", "FOLDER", "''"),
        },
        _READ
        | {
            "predictions": _PREDICTIONS,
            "budget": whole(0, 9),
            "purpose": one("'level'", "'level'", "'ndcg@2'", "'x'"),
            "pilot": _ASKED,
        }
        | {name: _HOW[name] for name in ("loss", "clip", "seed")},
        weight=0.7,
    ),
    entry(
        "verb('train')",
        {"_log": _LOG, "method": one("'mf'", "'ips'", "'dr'"), "out": _OUT, "set": _SET},
        _READ | {"survey": _ASKED, "resume": one("True"), "force": one("True")},
        weight=0.5,
    ),
    entry(
        "verb('train')",
        {"_log": _LOG, "method": one("'ome-dr'", "'ome-ips'", "'ome-dr'", "'x'"), "out": _OUT, "set": _SET, **_RATES},
        _READ | {"resume": one("True"), "force": one("True"), "seed": _HOW["seed"]},
        weight=0.7,
    ),
    entry(
        "verb('tune')",
        {"_log": _LOG, "out": _OUT, "trials": one("1", "0"), "folds": one("2", "1")},
        _READ
        | {
            "method": one("'auto'", "'mf'"),
            "objective": one("'ranking'", "'probability'", "'x'"),
            "seconds": one("1", "-1"),
        },
        weight=0.1,
    ),
    entry(
        "verb('evaluate')",
        {
            "_model": one(
                "folder_of(trained())",
                "folder_of(trained('mf', 1))",
                "folder_of(trained('mf', 0, 'ncf'))",
                "FOLDER / 'none'",
            ),
            "_test": one(
                "written('t.csv', b'user,item,rating\\nu0,u1,1\\nu1,u2,0\\nu9,u0,1\\n')", "FOLDER / 'none.csv'"
            ),
        },
        {"json": one("True"), "k": whole(0, 9), "positive_from": one("1", "9")},
        weight=0.7,
    ),
    entry(
        "verb('recommend')",
        {
            "_model": one(
                "folder_of(trained())", "folder_of(trained('mf', 1))", "folder_of(trained('mf', 0, 'features'))"
            ),
            "users": one("'u0'", "'u0,u1'", "'u3'", "'u0'", "','", "'x'"),
            "k": whole(1, 7),
        },
        {
            "all_users": one("True"),
            "fold_in": one("written('n.csv', b'user,item,rating\\nz,u1,1\\nz,u2,0\\n')"),
            "out": one("FOLDER / 'r.csv'", "FOLDER / 'r.json'", "FOLDER / 'r.parquet'", "FOLDER / 'r.txt'"),
        },
        weight=0.7,
    ),
    entry(
        "verb('assess')", {"_log": _LOG, "out": _OUT, "predictions": _PREDICTIONS}, _READ | _NOISE | _HOW, weight=0.1
    ),
    entry("verb('check')", {"_log": _LOG}, _READ | {"json": one("True"), "drop_missing": one("True")}, weight=0.7),
    entry(
        "verb('split')",
        {
            "_log": _LOG,
            "train": one("FOLDER / 'a.csv'", "FOLDER / 'a.parquet'"),
            "test": one("FOLDER / 'b.csv'", "FOLDER"),
        },
        _READ | {"held_out": one(".5", ".2", "0"), "by": one("'random'", "'user'", "'within-user'", "'time'", "'x'")},
        weight=0.7,
    ),
    entry("verb('prepare')", {"_log": _LOG, "out": _OUT}, _READ | {"memory": one("'1GB'", "'x'")}, weight=0.3),
    entry("verb('adapters')", {}, {"json": one("True")}, weight=0.1),
    entry("verb('methods')", {}, {"json": one("True")}, weight=0.1),
    entry("verb('datasets')", {}, {"json": one("True")}, weight=0.1),
    entry(
        filled(
            "lambda: run_command({words})",
            words=one(
                "[]",
                "['--version']",
                "['nothing']",
                "['train']",
                "['estimate', '--help']",
                "['--bad']",
                "['reproduce', 'x']",
                "['reproduce', 'table2', '--trials', '0']",
                "['', '']",
                "['assess', '\\ud800']",
            ),
        ),
        weight=0.3,
    ),
]
