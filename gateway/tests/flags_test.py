# SPDX-License-Identifier: Apache-2.0
"""The words of `outrider-gateway`'s flags."""
import contextlib
import io
import pathlib
import re
import tempfile
import unittest
from unittest import mock

from stand_ins import Reader, gateway

from outrider_gateway import app, main, version

ROOT = pathlib.Path(__file__).resolve().parents[2]


class FlagsTest(unittest.TestCase):
    def said(self, *flags):
        """(exit status, standard output, standard error)"""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch("sys.argv", ["outrider-gateway", *flags]), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err), self.assertRaises(SystemExit) as end:
            main.main()
        return end.exception.code, out.getvalue(), err.getvalue()

    def test_a_number_that_cannot_be_is_refused_in_words(self):
        for flag in ("--max-requests", "--request-seconds", "--slow-reader-seconds", "--drain-seconds",
                     "--keep-alive-seconds"):
            for value in ("x", "0", "-1", "1.5", ""):
                with self.subTest(flag, value=value):
                    status, _, err = self.said("--coordinator", "127.0.0.1:1", f"{flag}={value}")
                    self.assertEqual(status, 2)
                    self.assertIn(f"argument {flag}: needs a whole number above 0, not '{value}'\n", err)

    def test_the_version_is_the_projects(self):
        project, = re.findall(r"^project\(outrider VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
        self.assertEqual(version.VERSION, project)

    def test_the_version_of_an_image_names_its_commit(self):
        self.assertEqual(self.said("--version"), (0, f"outrider-gateway {version.VERSION}\n", ""))
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch("importlib.resources.files", return_value=pathlib.Path(folder)):
            (pathlib.Path(folder) / "commit.txt").write_text("3f2a1b4c5d6e\n")
            self.assertEqual(self.said("--version"), (0, f"outrider-gateway {version.VERSION} 3f2a1b4c5d6e\n", ""))


class VersionTest(unittest.IsolatedAsyncioTestCase):
    async def test_it_is_told_over_http(self):
        reader = Reader(app.create_app(gateway(), with_metrics=False), method="GET", path="/version")
        status, _, body = await reader.ask()
        self.assertEqual((status, body), (200, b'{"version":"%s"}' % version.VERSION.encode()))


if __name__ == "__main__":
    unittest.main()
