"""Tests of scripts/check_docs.py on small trees of documents."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_docs  # noqa: E402


class CheckDocs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()

    def write(self, name, text=""):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def problems(self):
        return check_docs.check_tree(self.root)[0]

    def test_accepts_links_to_files_headings_and_the_web(self):
        self.write("docs/glossary.md", "# Words\n## Home, full and shard\n")
        self.write("README.md", "[a](docs/glossary.md) [b](docs/glossary.md#home-full-and-shard) "
                                "[c](https://example.org/x) [d](docs)\n")

        self.assertEqual(self.problems(), [])

    def test_names_a_link_to_a_file_that_is_not_there(self):
        self.write("docs/a.md", "text\n[b](b.md)\n")

        self.assertEqual(self.problems(), ["docs/a.md:2: link to `b.md`: no such file"])

    def test_names_a_link_to_a_heading_that_is_not_there(self):
        self.write("docs/a.md", "# One\n[b](#two)\n")

        self.assertEqual(self.problems(),
                         ["docs/a.md:2: link to `#two`: no such heading in docs/a.md"])

    def test_names_a_project_path_in_backticks_that_is_not_there(self):
        self.write("scripts/test")
        self.write("README.md", "run `scripts/test`, then `scripts/other`\n")

        self.assertEqual(self.problems(), ["README.md:1: `scripts/other` does not exist"])

    def test_names_a_flag_that_the_program_does_not_know(self):
        self.write("apps/plan.cpp", 'app.add_flag("--json");')
        self.write("README.md", "```\nmpirun --bind-to none underkeel plan run.yaml --json\n"
                                "underkeel plan run.yaml --jsn\n```\n")

        self.assertEqual(self.problems(),
                         ["README.md:3: flag `--jsn` is not known to what the line runs"])

    def test_names_a_flag_that_a_script_does_not_know(self):
        self.write("scripts/install", 'case "$1" in --ci) ;; esac')
        self.write("README.md", "`scripts/install --ci`\n`scripts/install --all`\n")

        self.assertEqual(self.problems(),
                         ["README.md:2: flag `--all` is not known to what the line runs"])


if __name__ == "__main__":
    unittest.main()
