#!/usr/bin/env python3
"""Adds up ctest's JUnit files: prints `N passed, N failed`, and the names of what failed.

Exits 1 when a test failed, when a file is missing or broken, or when no test ran at all.
"""

import sys
import xml.etree.ElementTree as ElementTree


def count(file):
    """(passed, names of failed) in one JUnit file. Skipped and disabled tests count as neither."""
    passed, failed = 0, []
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        status = case.get("status", "run")
        if case.find("failure") is not None or case.find("error") is not None or status == "fail":
            failed.append(case.get("name"))
        elif status == "run" and case.find("skipped") is None:
            passed += 1
    return passed, failed


def main(files):
    passed, failed = 0, []
    for file in files:
        try:
            file_passed, file_failed = count(file)
        except (OSError, ElementTree.ParseError) as error:
            file_passed, file_failed = 0, [f"{file}: {error}"]
        passed += file_passed
        failed += file_failed
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
