"""Tests of scripts/count_tests.py: what it adds up and when it fails."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import count_tests  # noqa: E402

PASSED = '<testsuite><testcase name="a" status="run"/><testcase name="b" status="run"/></testsuite>'
FAILED = ('<testsuite><testcase name="c" status="fail"><failure message=""/></testcase>'
          '<testcase name="d" status="notrun"><skipped message=""/></testcase></testsuite>')


class CountTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_on(self, *texts):
        files = []
        for index, text in enumerate(texts):
            files.append(self.folder / f"{index}.xml")
            files[-1].write_text(text, encoding="utf-8")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = count_tests.main(files)
        return status, output.getvalue().splitlines()

    def test_adds_up_several_files(self):
        self.assertEqual(self.run_on(PASSED, PASSED), (0, ["4 passed, 0 failed"]))

    def test_names_the_failed_and_leaves_out_the_skipped(self):
        self.assertEqual(self.run_on(PASSED, FAILED), (1, ["failed: c", "2 passed, 1 failed"]))

    def test_no_test_at_all_is_a_failure(self):
        self.assertEqual(self.run_on("<testsuite/>"), (1, ["0 passed, 0 failed"]))

    def test_a_broken_file_is_a_failure(self):
        status, lines = self.run_on(PASSED, "<testsuite>")

        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "2 passed, 1 failed")


if __name__ == "__main__":
    unittest.main()
