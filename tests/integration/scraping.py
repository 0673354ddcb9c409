# SPDX-License-Identifier: Apache-2.0
"""What the real programs say of themselves over HTTP."""
import re
import urllib.error
import urllib.request

from programs import ProgramTest


def get(address, page):
    """(status, text) of a page over HTTP."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}{page}", timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class ScrapingTest(ProgramTest):
    """Programs that are started with HTTP, and read."""
    HTTP = ["--metrics-listen", "127.0.0.1:0"]

    def http(self, program):
        return re.search(r"metrics on (\S+)", program.out())[1]

    def scrape(self, program):
        status, text = get(self.http(program), "/metrics")
        self.assertEqual(status, 200)
        return text

    def value(self, program, name, **labels):
        """The sum of the samples that have these labels, now."""
        return self.sample(self.scrape(program), name, **labels)

    def sample(self, page, name, **labels):
        """The sum of the samples on a page that have these labels."""
        values = []
        for line in page.splitlines():
            match = re.fullmatch(rf"outrider_{name}(?:\{{(.*)\}})? (\S+)", line)
            if match and all(f'{key}="{label}"' in (match[1] or "") for key, label in labels.items()):
                values.append(float(match[2]))
        self.assertTrue(values, f"no sample of {name} {labels}")
        return sum(values)
