# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by openssl: an authority, and what it signs."""
import subprocess


class Authority:
    """Signs certificates; its own is `path`. All files lie in `folder`."""

    def __init__(self, folder, name="ca"):
        self.folder, self.path, self._key = folder, folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", *NEW_KEY, "-keyout", self._key, "-out", self.path, "-days", "2",
                "-subj", f"/CN=test {name}")

    def sign(self, name, days=2, hosts=(), here=True):
        """A certificate for these hosts, and this machine: (certificate, key). Negative days: one that is over."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        names = [*(["IP:127.0.0.1", "DNS:localhost"] if here else []), *(f"DNS:{host}" for host in hosts)]
        extensions.write_text(f"subjectAltName={','.join(names)}\n")
        openssl("req", "-new", *NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", request, "-CA", self.path, "-CAkey", self._key,
                "-CAcreateserial", "-days", days, "-extfile", extensions, "-out", certificate)
        return certificate, key

    def flags(self, name, **kind):
        """What a program needs to be `name`, and to trust this authority."""
        certificate, key = self.sign(name, **kind)
        return ["--tls-cert", certificate, "--tls-key", key, "--tls-ca", self.path]


NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
