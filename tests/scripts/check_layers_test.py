"""Tests of scripts/check_layers.py on small source trees."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_layers  # noqa: E402

LAYERS = """# layers
base:
kernels/facts: base
kernels:  base kernels/facts
exec:     base kernels
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("src/LAYERS", LAYERS)

    def write(self, name, text=""):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def problems(self):
        return check_layers.check_tree(self.root)[0]

    def test_accepts_own_layer_and_the_layers_on_its_line(self):
        self.write("src/base/a.h")
        self.write("src/base/b.h", '#include "base/a.h"\n#include <vector>\n')
        self.write("src/kernels/k.h", '#include "base/b.h"\n')

        self.assertEqual(self.problems(), [])

    def test_names_an_upward_include_with_file_and_line(self):
        self.write("src/exec/e.h")
        self.write("src/base/a.h", '#pragma once\n#include "exec/e.h"\n')

        self.assertEqual(self.problems(),
                         ["src/base/a.h:2: `base` may not include `exec` (exec/e.h)"])

    def test_an_include_is_not_inherited_from_a_lower_layer(self):
        self.write("src/kernels/facts/f.h")
        self.write("src/exec/e.cpp", '#include "kernels/facts/f.h"\n')

        self.assertEqual(self.problems(), ["src/exec/e.cpp:1: `exec` may not include "
                                           "`kernels/facts` (kernels/facts/f.h)"])

    def test_a_nested_layer_is_not_part_of_its_parent(self):
        self.write("src/kernels/k.h")
        self.write("src/kernels/facts/f.cpp", '#include "kernels/k.h"\n')

        self.assertEqual(self.problems(), ["src/kernels/facts/f.cpp:1: `kernels/facts` may not "
                                           "include `kernels` (kernels/k.h)"])

    def test_a_backend_is_private_to_its_parent(self):
        self.write("src/kernels/cpu/vector.h")
        self.write("src/kernels/table.cpp", '#include "kernels/cpu/vector.h"\n')
        self.write("src/exec/e.cpp", '#include "kernels/cpu/vector.h"\n')
        self.write("apps/main.cpp", '#include "kernels/cpu/vector.h"\n')

        self.assertEqual(self.problems(),
                         ["src/exec/e.cpp:1: kernels/cpu/vector.h is private to `kernels`",
                          "apps/main.cpp:1: kernels/cpu/vector.h is private to `kernels`"])

    def test_a_missing_or_relative_include_is_named(self):
        self.write("src/base/a.h")
        self.write("src/base/b.cpp", '#include "a.h"\n')

        self.assertEqual(self.problems(), ['src/base/b.cpp:1: "a.h" is not a file under src/'])

    def test_a_file_outside_every_layer_is_named(self):
        self.write("src/extra/x.cpp")

        self.assertEqual(self.problems(), ["src/extra/x.cpp:1: is in no layer of src/LAYERS"])

    def test_json_stays_inside_cpp_files(self):
        self.write("src/base/a.h", "#include <nlohmann/json.hpp>\n")
        self.write("src/base/b.h", "#include <nlohmann/json_fwd.hpp>\n")
        self.write("src/base/a.cpp", "#include <nlohmann/json.hpp>\n")

        self.assertEqual(self.problems(), ["src/base/a.h:1: <nlohmann/json.hpp> may be included "
                                           "in .cpp files only"])

    def test_a_cuda_file_does_not_reach_fmt_through_headers(self):
        self.write("src/base/text.h", "#include <fmt/format.h>\n")
        self.write("src/kernels/k.h", '#include "base/text.h"\n')
        self.write("src/kernels/cuda/k.cu", '#include "kernels/k.h"\n')

        self.assertEqual(self.problems(),
                         ["src/kernels/cuda/k.cu:1: reaches <fmt/format.h> by way of "
                          "src/kernels/cuda/k.cu -> src/kernels/k.h -> src/base/text.h"])

    def test_layers_are_listed_from_the_bottom_up(self):
        self.write("src/LAYERS", "base: exec\nexec: base\n")

        self.assertEqual(self.problems(), ["src/LAYERS:1: `base` may not include `exec`, which "
                                           "is not listed above it"])


if __name__ == "__main__":
    unittest.main()
