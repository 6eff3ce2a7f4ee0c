#!/usr/bin/env python3
"""Checks every #include under src/ (and apps/) against src/LAYERS.

Rules: a file may include its own layer and the layers its line in LAYERS names; LAYERS lists lower
layers first; a subfolder of a layer (a backend) is private to that layer; project includes are
written by path from src/ and exist; spdlog, json, yaml and CLI11 stay inside .cpp files; nothing
that a .cu or .cuh file reaches includes them or fmt.

Prints one line per violation, `file:line: sentence`, and exits 1 when there is any.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
CXX_ONLY = ("spdlog/", "nlohmann/", "yaml-cpp/", "CLI/")
FORWARD_DECLARATIONS = {"nlohmann/json_fwd.hpp"}  # names without the library's weight
NEVER_IN_CUDA = CXX_ONLY + ("fmt/",)
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
APPS = "apps"


@dataclass(frozen=True)
class Include:
    line: int
    target: str
    quoted: bool


def read_layers(text):
    """Layer folder -> set of layers it may include; and a list of problems of the file itself."""
    allowed, problems = {}, []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        folder, _, rest = line.partition(":")
        for name in rest.split():
            if name not in allowed:
                problems.append(f"src/LAYERS:{number}: `{folder}` may not include `{name}`, "
                                "which is not listed above it")
        allowed[folder.strip()] = set(rest.split())
    return allowed, problems


def layer_of(path, layers):
    """The layer with the longest folder that holds `path` (relative to src/), or None."""
    holders = [layer for layer in layers if path.startswith(layer + "/")]
    return max(holders, key=len, default=None)


def is_private(path, layer):
    """Whether `path` lies in a subfolder of its layer: a backend."""
    return "/" in path[len(layer) + 1:]


def includes_of(file):
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            found.append(Include(number, match[1] or match[2], match[1] is not None))
    return found


def source_files(folder):
    return sorted(f for f in folder.rglob("*") if f.suffix in SUFFIXES) if folder.is_dir() else []


def check_file(root, file, layers, includes):
    """Violations of one file: where its includes point."""
    src = root / "src"
    in_src = file.is_relative_to(src)
    name = file.relative_to(root)
    own_path = file.relative_to(src).as_posix() if in_src else name.as_posix()
    own_layer = layer_of(own_path, layers) if in_src else APPS
    if own_layer is None:
        yield f"{name}:1: is in no layer of src/LAYERS"
        return
    for include in includes[file]:
        at = f"{name}:{include.line}"
        if (file.suffix != ".cpp" and include.target.startswith(CXX_ONLY)
                and include.target not in FORWARD_DECLARATIONS):
            yield f"{at}: <{include.target}> may be included in .cpp files only"
        if not include.quoted:
            continue
        if not (src / include.target).is_file():
            if own_layer == APPS and (file.parent / include.target).is_file():
                continue
            yield f'{at}: "{include.target}" is not a file under src/'
            continue
        layer = layer_of(include.target, layers)
        if layer is None:
            yield f'{at}: "{include.target}" is in no layer of src/LAYERS'
        elif layer != own_layer and own_layer != APPS and layer not in layers[own_layer]:
            yield f"{at}: `{own_layer}` may not include `{layer}` ({include.target})"
        elif layer != own_layer and is_private(include.target, layer):
            yield f"{at}: {include.target} is private to `{layer}`"


def check_cuda(root, file, includes):
    """Violations of a .cu or .cuh file: libraries that it reaches through project headers."""
    src = root / "src"
    queue, came_from = [file], {file: None}
    while queue:
        current = queue.pop(0)
        for include in includes.get(current, []):
            if include.target.startswith(NEVER_IN_CUDA):
                chain, step = [], current
                while step is not None:
                    chain.insert(0, step.relative_to(root).as_posix())
                    step = came_from[step]
                yield f"{chain[0]}:1: reaches <{include.target}> by way of {' -> '.join(chain)}"
            target = src / include.target
            if include.quoted and target.is_file() and target not in came_from:
                came_from[target] = current
                queue.append(target)


def check_tree(root):
    layers, problems = read_layers((root / "src" / "LAYERS").read_text(encoding="utf-8"))
    files = source_files(root / "src") + source_files(root / APPS)
    includes = {file: includes_of(file) for file in files}
    for file in files:
        problems.extend(check_file(root, file, layers, includes))
        if file.suffix in {".cu", ".cuh"}:
            problems.extend(check_cuda(root, file, includes))
    return problems, len(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    problems, count = check_tree(parser.parse_args().root)
    for problem in problems:
        print(problem)
    print(f"layers: {count} files, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
