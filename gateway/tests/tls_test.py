# SPDX-License-Identifier: Apache-2.0
"""TLS files of the gateway: what is taken over of them, and when it expires. Certificates are made by openssl."""
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "tests/integration")]
import make_stubs  # noqa: E402

make_stubs.main()

from certificates import Authority, openssl  # noqa: E402

from outrider_gateway import tls  # noqa: E402

DAY = 86400


class TlsFilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.authority = Authority(self.folder)  # of two days
        self.files = tls.Files(self.authority.path, *self.authority.sign("own", days=90))

    def days(self, credentials):
        """How many there are to the end of each file, rounded."""
        return {file: round((end - time.time()) / DAY) for file, end in credentials.expiries().items()}

    def sign(self, name, **kind):
        for target, source in zip((self.files.certificate, self.files.key), self.authority.sign(name, **kind),
                                  strict=True):
            source.rename(target)

    def append(self, path, other):
        path.write_bytes(path.read_bytes() + other.read_bytes())

    def test_each_file_has_an_end(self):
        self.assertEqual(self.days(tls.Credentials(self.files)), {"tls-cert": 90, "tls-ca": 2})
        self.assertEqual(self.days(tls.Credentials(tls.Files(self.authority.path))), {"tls-ca": 2})
        self.assertEqual(tls.Credentials(None).expiries(), {})

    def test_of_a_chain_the_first_to_expire_counts(self):
        self.append(self.files.certificate, self.authority.path)
        self.assertEqual(self.days(tls.Credentials(self.files))["tls-cert"], 2)

    def authority_over(self):
        """The same authority, of yesterday."""
        path = self.folder / "over.pem"
        openssl("x509", "-in", self.authority.path, "-signkey", self.folder / "ca.key", "-days", -1, "-out", path)
        return path

    def test_a_pair_is_taken_over_whose_chain_has_an_issuer_that_is_over(self):
        credentials = tls.Credentials(self.files)
        before = credentials.current
        self.append(self.files.certificate, self.authority_over())
        self.assertTrue(credentials.changed())
        self.assertIsNot(credentials.current, before)

    def test_of_authorities_the_first_counts_that_is_not_over(self):
        self.append(self.authority.path, self.authority_over())
        self.assertEqual(self.days(tls.Credentials(self.files))["tls-ca"], 2)
        for now, end in ((0, 10), (10, 30), (40, 30)):
            with mock.patch.object(tls.time, "time", return_value=now):
                self.assertEqual(tls.expiry.next_of([30, 10]), end)

    def test_an_expired_pair_leaves_the_one_before_in_use_and_is_no_beginning(self):
        credentials = tls.Credentials(self.files)
        before = credentials.current
        self.sign("over", days=-1)
        with self.assertLogs("outrider_gateway.tls") as log:
            self.assertFalse(credentials.changed())
            self.assertFalse(credentials.changed())
        self.assertEqual(len(log.output), 1)
        self.assertIn("certificate has expired", log.output[0])
        self.assertIs(credentials.current, before)
        self.assertEqual(self.days(credentials)["tls-cert"], 90)
        with self.assertRaisesRegex(ValueError, "certificate has expired"):
            tls.Credentials(self.files)
        self.sign("renewed", days=30)
        self.assertTrue(credentials.changed())
        self.assertEqual(self.days(credentials)["tls-cert"], 30)
        self.assertFalse(credentials.changed())

    def test_what_could_not_be_used_is_tried_again_without_a_change(self):
        credentials = tls.Credentials(self.files)
        self.sign("renewed")
        with mock.patch.object(tls, "_read", side_effect=ValueError("not valid yet")):
            self.assertFalse(credentials.changed())
        self.assertTrue(credentials.changed())

    def test_authorities_that_are_all_over_are_refused(self):
        self.authority_over().rename(self.authority.path)
        with self.assertRaisesRegex(ValueError, "ca.pem"):
            tls.Credentials(self.files)


if __name__ == "__main__":
    unittest.main()
