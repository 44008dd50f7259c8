"""Builds the documentation as a static site and checks every link of it: `make site`.

    build.py STOA OUT

STOA is the command, from which the reference of commands and formats is taken; OUT is replaced. The pages are the
Markdown files of the repository, as they are: a page that is missing, a heading that is gone, or anything that a
browser would fetch from elsewhere is an error. Search works without a server.
"""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CONF = """
project = "stoa"
author = "The stoa developers"
copyright = "The stoa developers"
html_title = "stoa"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
html_show_search_summary = False  # without a server a browser cannot fetch the pages found, to quote them
myst_heading_anchors = 4
myst_enable_extensions = ["strikethrough"]
suppress_warnings = ["misc.highlighting_failure", "myst.header", "myst.strikethrough"]
highlight_language = "none"
html_theme_options = {"top_of_page_buttons": []}
"""

# The navigation: a title, and pages or patterns of pages.
NAV = [
    ("Begin here", ["README", "docs/verbs", "docs/installing", "docs/recipes/README", "docs/recipes/*", "CHANGELOG"]),
    ("Concepts", ["docs/concepts/README", "docs/concepts/*"]),
    ("Reference", ["reference/commands", "reference/formats", "docs/predicates", "docs/findings/README",
                   "docs/findings/*", "docs/splits", "docs/remote", "docs/limits", "docs/json/README",
                   "reference/schemas", "reference/library"]),
    ("Formats", ["docs/formats/*"]),
    ("From other programs", ["python/README", "reference/python", "docs/sql", "reference/sql", "docs/spark", "docs/flight", "docs/serve",
                             "reference/agents"]),
    ("How it is made", ["docs/architecture", "docs/benchmarks", "docs/decisions/*", "corpus/README",
                        "corpus/releases/README", "interop/README", "*"]),
]

LIBRARY = [".", "./pred", "./region", "./fault", "./stage", "./advise", "./store", "./format/cfile", "./format/kudu",
           "./format/carbon", "./format/redfile", "./format/trevni", "./format/parquet"]

LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")


def fail(message):
    sys.exit("site: " + message)


def run(*args):
    return subprocess.run(args, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def fenced(text, language="text"):
    fence = "`" * max(3, 1 + max((len(m) for m in re.findall(r"`{3,}", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def commands(stoa):
    """One section a verb: what `stoa help VERB -v` prints."""
    text = "# Commands\n\nWhat `stoa help VERB -v` prints, for each verb.\n\n" + fenced(run(stoa, "help"))
    verbs = re.findall(r"^  ([a-z][a-z-]+) {2,}\S", run(stoa, "help"), re.M)
    if len(verbs) < 20:
        fail(f"expected the verbs in stoa help, found {verbs}")
    for v in sorted(set(verbs) - {"help"}):
        text += f"\n## stoa {v}\n\n" + fenced(run(stoa, "help", v, "-v"))
    return text


def formats(stoa):
    """What stoa can do with each format, and its options."""
    yes = lambda b: "yes" if b else "–"
    known = json.loads(run(stoa, "formats", "-f", "json"))
    can = ["read", "write", "list", "describe", "verify", "recover"]
    text = "# Formats and their options\n\n| format | " + " | ".join(can) + " |\n" + "|---" * 7 + "|\n"
    for f in known:
        text += f"| [{f['name']}](#{f['name'].replace(',', '')}) | " + " | ".join(yes(f[c]) for c in can) + " |\n"
    cell = lambda s: s.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    for f in known:
        text += f"\n## {f['name']}\n\n{cell(f['title'])}.\n"
        for key, title in (("read_options", "Reading"), ("write_options", "Writing")):
            if f[key]:
                text += f"\n**{title}**\n\n| option | values | |\n|---|---|---|\n"
                text += "".join(f"| `{o['name']}` | {cell(o['values'])} | {cell(o['help'])} |\n" for o in f[key])
    return text


def library():
    text = "# The Go library\n\nWhat `go doc -all` prints for the packages that a program imports.\n"
    for package in LIBRARY:
        doc = run("go", "doc", "-all", package)
        name = re.search(r'import "([^"]+)"', doc)[1]
        text += f"\n## {name}\n\n" + fenced(doc, "go")
    return text


def python():
    """The public names of the Python package, with their documentation, without importing it."""
    import ast

    text = "# The Python package\n\nThe names of `stoa`, with their documentation.\n"
    exported = re.findall(r"\w+", re.search(r"__all__ = \[(.*?)\]", read("python/stoa/__init__.py"), re.S)[1])
    for file in sorted(os.listdir(os.path.join(ROOT, "python/stoa"))):
        if not file.endswith(".py"):
            continue
        for node in ast.parse(read("python/stoa/" + file)).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in exported:
                text += f"\n## {node.name}\n\n" + signature(node)
                for m in getattr(node, "body", []):
                    if isinstance(node, ast.ClassDef) and isinstance(m, ast.FunctionDef) and not m.name.startswith("_"):
                        text += f"\n### {node.name}.{m.name}\n\n" + signature(m)
    return text


def signature(node):
    import ast

    head = f"class {node.name}" if isinstance(node, ast.ClassDef) else f"{node.name}({ast.unparse(node.args)})"
    return fenced(head + "\n\n" + (ast.get_docstring(node) or ""))


def functions():
    """The table functions of SQL, from the table in which the code has them."""
    code = read("sql/tables/functions.go")
    code = code[code.index("var functions = "):code.index("// Functions are")]
    types = {"text": "VARCHAR", "whole": "BIGINT", "number": "DOUBLE", "truth": "BOOLEAN"}
    text = "# SQL functions\n\n`stoa(ADDRESS, …)` reads a table ([SQL](../docs/sql.md)). These functions return what a verb prints.\n"
    verbs = re.split(r'\{verb: "', code)[1:]
    if len(verbs) < 7:
        fail(f"expected the functions of SQL, found {len(verbs)}")
    for v in verbs:
        name = v[:v.index('"')]
        named = re.search(r"named: \[\]string\{([^}]*)\}", v)
        arguments = ["PLACE"] if "places: 1" in v else ["A", "B"]
        arguments += [n + " := …" for n in re.findall(r'"(\w+)"', named[1])] if named else []
        text += f"\n## stoa_{name}({', '.join(arguments)})\n\nWhat `stoa {name}` prints.\n\n| column | type | member of the JSON |\n|---|---|---|\n"
        columns = re.findall(r'\{"(\w+)", "([\w.]+)", (\w+)\}', v)
        if len(columns) < 5:
            fail(f"expected the columns of stoa_{name}, found {columns}")
        text += "".join(f"| `{c}` | {types[t]} | `{path}` |\n" for c, path, t in columns)
    return text


def schemas():
    text = "# JSON schemas\n\nOf each document of `-f json`; see [JSON](../docs/json/README.md).\n"
    for name in sorted(os.listdir(os.path.join(ROOT, "docs/json"))):
        if name.endswith(".json"):
            text += f"\n## {name}\n\n" + fenced(read("docs/json/" + name), "json")
    return text


def pages():
    """The Markdown files of the repository that are documentation."""
    tracked = run("git", "ls-files", "-co", "--exclude-standard", "*.md").split("\n")
    return [n for n in tracked if n and "/testdata/" not in n and not n.startswith(("cmd/", "internal/", "docs/site/"))]


def stage(stoa, to):
    names = pages()
    generated = {"reference/commands": commands(stoa), "reference/formats": formats(stoa),
                 "reference/library": library(), "reference/sql": functions(), "reference/python": python(), "reference/schemas": schemas(),
                 "reference/agents": "# For programs\n\n" + fenced(run(stoa, "skill"), "markdown")}
    for name in names:
        put(to, name, links(name, read(name), set(names)))
    for name, text in generated.items():
        put(to, name + ".md", text)
    put(to, "conf.py", CONF)
    every = {n[:-3] for n in names} | set(generated)
    taken, index = set(), "# stoa\n\n" + re.sub(r"\A# stoa\n", "", links("README.md", read("README.md"), set(names)))
    for title, patterns in NAV:
        listed = []
        for p in patterns:
            found = sorted(n for n in every - taken
                           if n == p or p == "*" or p.endswith("/*") and n.startswith(p[:-1]))
            if not found and p != "*":
                fail(f"no page is {p}")
            listed += [n for n in found if n != "README"]
            taken |= set(found)
        index += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(listed) + "\n```\n"
    put(to, "index.md", index)
    os.remove(os.path.join(to, "README.md"))


def links(page, text, names):
    """Links to directories and to files that are not pages: the former to a README, the latter are copied."""
    here = os.path.dirname(page)

    def one(m):
        word, target = m[1], m[2]
        if re.match(r"[a-z]+:|#", target):
            return m[0]
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(here, path))
        if os.path.isdir(os.path.join(ROOT, full)):
            inside = {"docs/formats": "reference/formats.md"}.get(full, os.path.join(full, "README.md"))
            if inside not in names and not inside.startswith("reference/"):
                return word[1:-1]  # a directory without a page is only a name
            full = inside
        elif not os.path.exists(os.path.join(ROOT, full)):
            fail(f"{page}: {target} does not exist")
        elif full not in names and not full.endswith((".png", ".svg")):
            if full.startswith("docs/json/"):
                anchor, full = os.path.basename(full).replace(".", ""), "reference/schemas.md"
            else:
                return f"{word[1:-1]} (`{full}`)"  # a file of the sources is only a name
        if full == "README.md":
            full = "index.md"
        if full.endswith((".png", ".svg")):
            copies.add(full)
        return f"{word}({os.path.relpath(full, here or '.')}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)  # nothing in code is a link
    return "".join(p if i % 2 else LINK.sub(one, p) for i, p in enumerate(parts))


copies = set()


def put(to, name, text):
    name = os.path.join(to, name)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w", encoding="utf-8") as f:
        f.write(text)


class Page(html.parser.HTMLParser):
    """The anchors of a page, what it links to, and what a browser loads with it."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if a.get("id"):
            self.anchors.add(a["id"])
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        if tag in ("img", "script", "iframe", "source", "video") and a.get("src"):
            self.loads.append(a["src"])
        if tag == "link" and a.get("rel") not in ("canonical", "author"):
            self.loads.append(a["href"])


def check(out):
    """Follows every link of the site, by the files that were written."""
    found, wrong, n = {}, [], 0
    for folder, _, files in os.walk(out):
        for f in files:
            name = os.path.join(folder, f)
            with open(name, "rb") as file:
                text = file.read().decode("utf-8", "replace")
            if ROOT in text or tempfile.gettempdir() + "/stoa-site" in text:
                wrong.append(f"{name} has a path of this machine")
            if f.endswith(".html"):
                found[name] = Page(text)
            if f.endswith(".css"):
                wrong += [f"{name} loads {u}" for u in re.findall(r"(?:url\(|@import\s*)['\"]?(https?:[^'\")]+)", text)]
    for name, page in found.items():
        for link in page.links + page.loads:
            u = urllib.parse.urlsplit(link)
            if u.scheme in ("http", "https", "mailto") or u.netloc:
                if link in page.loads:
                    wrong.append(f"{name} loads {link}")
                continue
            to = os.path.normpath(os.path.join(os.path.dirname(name), urllib.parse.unquote(u.path))) if u.path else name
            n += 1
            if not os.path.exists(to):
                wrong.append(f"{name}: {link} is not there")
            elif u.fragment and to in found and urllib.parse.unquote(u.fragment) not in found[to].anchors:
                wrong.append(f"{name}: {link} has no such heading")
    if n < 1000 or not os.path.exists(os.path.join(out, "searchindex.js")):
        wrong.append(f"only {n} links were found, or no index for the search")
    for w in sorted(set(wrong)):
        print(os.path.relpath(w, out) if w.startswith(out) else w, file=sys.stderr)
    if wrong:
        fail(f"{len(set(wrong))} faults")
    print(f"{len(found)} pages, {n} links")


def mend_highlight(name):
    """A word searched for may also be in the title of an icon, which has no box: Sphinx's script would stop there."""
    with open(name, encoding="utf-8") as f:
        text = f.read()
    was = "const isInSVG = closestNode && closestNode.matches(\"svg\");"
    if text.count(was) != 1:
        fail("sphinx_highlight.js is another: is it mended?")
    with open(name, "w", encoding="utf-8") as f:
        f.write(text.replace(was, was + "\n      if (isInSVG && !parent.getBBox) return;"))


def main():
    stoa, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    from sphinx.cmd.build import main as sphinx

    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="stoa-site") as d:
        source = os.path.join(d, "source")
        stage(stoa, source)
        for name in copies:
            os.makedirs(os.path.join(source, os.path.dirname(name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(source, name))
        if sphinx(["-q", "-W", "--keep-going", "-b", "html", "-d", os.path.join(d, "trees"), source, out]):
            fail("the pages have faults")
    for left in (".buildinfo", "objects.inv"):
        os.remove(os.path.join(out, left))
    mend_highlight(os.path.join(out, "_static", "sphinx_highlight.js"))
    check(out)


if __name__ == "__main__":
    main()
