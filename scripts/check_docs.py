#!/usr/bin/env python3
"""Checks the Markdown files: what they point to exists.

- A relative link names a file or folder, and its #anchor a heading of that file.
- A path in backticks under a folder of the project (`scripts/test`) exists.
- A --flag on a line that names `underkeel` or a script is one that its source knows.

Prints one line per finding, `file:line: sentence`, and exits 1 when there is any.
"""

import argparse
import re
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
SCRIPT = re.compile(r"scripts/[a-z_]+(?:\.py)?")
PROJECT_PATH = re.compile(
    r"^(?:src|apps|tests|bench|examples|docs|scripts|cmake|\.ci)/[\w./-]+$")
IGNORED_FOLDERS = {"build", ".git"}


def markdown_files(root):
    return sorted(f for f in root.rglob("*.md")
                  if not IGNORED_FOLDERS & set(f.relative_to(root).parts))


def anchor_of(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"[`*]", "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors_of(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    return {anchor_of(line.lstrip("#")) for line in lines if line.startswith("#")}


def check_link(root, file, target):
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    pointed = (file.parent / path).resolve() if path else file
    if not pointed.exists():
        return f"link to `{target}`: no such file"
    if anchor and pointed.suffix == ".md" and anchor not in anchors_of(pointed):
        return f"link to `{target}`: no such heading in {pointed.relative_to(root)}"
    return None


def known_flags(root):
    """Every --flag that is written in the program's sources; None when there is no program yet."""
    sources = list((root / "apps").rglob("*.cpp"))
    if not sources:
        return None
    return set(FLAG.findall("\n".join(f.read_text(encoding="utf-8") for f in sources)))


def check_flags(root, line, program_flags):
    """Flags after the command that the line runs."""
    scripts = SCRIPT.findall(line)
    if scripts:
        if not all((root / script).is_file() for script in scripts):
            return  # reported as a missing path
        known = set().union(*(FLAG.findall((root / s).read_text(encoding="utf-8"))
                              for s in scripts))
    elif re.search(r"\bunderkeel [a-z]", line) and program_flags is not None:
        known = program_flags | {"--help"}
        line = line[line.index("underkeel "):]
    else:
        return
    for flag in FLAG.findall(line):
        if flag not in known:
            yield f"flag `{flag}` is not known to what the line runs"


def check_file(root, file, program_flags):
    in_code_block = False
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code_block = not in_code_block
            continue
        found = list(check_flags(root, line, program_flags))
        if not in_code_block:
            found += [p for t in LINK.findall(line) if (p := check_link(root, file, t))]
            found += [f"`{code}` does not exist" for code in CODE.findall(line)
                      if PROJECT_PATH.match(code) and not (root / code).exists()]
        for problem in found:
            yield f"{file.relative_to(root)}:{number}: {problem}"


def check_tree(root):
    files = markdown_files(root)
    flags = known_flags(root)
    return [p for file in files for p in check_file(root, file, flags)], len(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    problems, count = check_tree(parser.parse_args().root.resolve())
    for problem in problems:
        print(problem)
    print(f"docs: {count} files, {len(problems)} findings")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
