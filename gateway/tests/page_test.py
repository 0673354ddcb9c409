# SPDX-License-Identifier: Apache-2.0
"""The page at /, in a real browser. With a folder as argument, its screenshots are left there."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "tests/integration")]
import make_stubs  # noqa: E402

make_stubs.main()

from playwright import sync_api  # noqa: E402
from programs import BIN, TARGET, Program, ProgramTest  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
SHOTS = pathlib.Path(os.environ.get("OUTRIDER_SHOTS", tempfile.gettempdir()))
TESTS_PROMPT = """import unittest


class TestQueue(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(len(Queue()), 0)

    def test_push(self):
"""


@unittest.skipIf(BROWSER is None, "NOT RUN: no chromium on this machine; apt-get install chromium")
class PageTest(ProgramTest):
    def setUp(self):
        super().setUp()
        verifier = self.start_verifier().address()
        coordinator = self.start_coordinator(verifier, self.start_drafter().address()).address()
        gateway = Program(sys.executable, "-B", "-m", "outrider_gateway", "--listen", "127.0.0.1:0",
                          "--coordinator", coordinator, "--model", TARGET,
                          inside=("env", f"PYTHONPATH={HERE.parent}"))
        self.addCleanup(gateway.close)
        self.url = f"http://{gateway.address()}/"
        self.wait_for_nodes(coordinator, "verifier", "drafter")
        self.playwright = sync_api.sync_playwright().start()
        self.addCleanup(self.playwright.stop)
        self.browser = self.playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        self.addCleanup(self.browser.close)

    def open(self, **options):
        page = self.browser.new_page(**options)
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.goto(self.url)
        return page

    def figure(self, page, pane, name):
        return page.locator(f"#{pane} [data-figure='{name}'] b").inner_text()

    def test_a_prompt_becomes_coloured_tokens_and_true_figures(self):
        page = self.open(viewport={"width": 1180, "height": 1000})
        page.locator("#prompt").press("Control+Enter")
        page.locator("#status", has_text="Done").wait_for(timeout=60_000)
        texts = [page.locator(f"#{pane} .text").inner_text() for pane in ("fast", "slow")]
        self.assertEqual(texts[0], texts[1])  # greedy: the same text
        origins = [one.get_attribute("class").split()[1] for one in page.locator("#fast .token").all()]
        self.assertEqual(len(origins), int(self.figure(page, "fast", "tokens")))
        self.assertIn("draft", origins)
        self.assertTrue({"replacement", "bonus"} & set(origins))
        self.assertLess(int(self.figure(page, "fast", "passes")), int(self.figure(page, "slow", "passes")))
        color = page.locator("#fast .token.draft").first.evaluate("one => getComputedStyle(one).backgroundColor")
        self.assertNotEqual(color, page.locator("#slow .token").first.evaluate(
            "one => getComputedStyle(one).backgroundColor"))
        self.assertEqual(page.locator("#fast .accepted .bar").count(), 4)
        self.assertTrue(page.locator("#key-field").is_hidden())
        self.assertEqual(self.errors, [])

    def test_every_origin_has_a_colour_of_its_own(self):
        page = self.open(viewport={"width": 1180, "height": 800})
        page.locator("#prompt").fill(TESTS_PROMPT)
        for name, value in (("temperature", "0.8"), ("seed", "5"), ("max", "120")):
            page.locator(f"#{name}").fill(value)
        page.locator("#rule").select_option("coupled")  # one seed, one text: also that of plain decoding
        page.locator("#lookup").check()
        page.locator("#go").click()
        page.locator("#status", has_text="Done").wait_for(timeout=60_000)
        texts = [page.locator(f"#{pane} .text").inner_text() for pane in ("fast", "slow")]
        self.assertEqual(texts[0], texts[1])
        colors = {origin: page.locator(f"#fast .token.{origin}").first.evaluate(
            "one => getComputedStyle(one).backgroundColor") for origin in ("draft", "lookup", "replacement", "bonus")}
        self.assertEqual(len(set(colors.values())), 4, colors)
        names = page.locator("#fast .times .bar span").all_inner_texts()
        self.assertTrue({"drafter", "verifier"} <= set(names), names)
        page.screenshot(path=SHOTS / "gateway.png", full_page=True)
        self.assertEqual(self.errors, [])

    def test_speed_is_of_the_tokens_that_came_since_the_clock_began(self):
        page = self.open()
        found = page.evaluate("""() => {
          const pane = new Pane("fast", false);
          const times = Object.fromEntries(["draft", "verify", "draft_compute", "verify_compute", "round"]
            .map(name => [name + "_time", 1]));
          const round = num => ({text: "x".repeat(num), outrider: {
            tokens: Array.from({length: num}, () => ({id: 1, text: "x", origin: "draft"})),
            round: {num_drafted: num, num_accepted: num, ...times}}});
          pane.add(round(5));
          pane.started -= 1e6;
          pane.add(round(3));
          return [pane.tokens, pane.tokensSince, Math.round(pane.seconds / 1000)];
        }""")
        self.assertEqual(found, [8, 3, 1])
        self.assertEqual(self.errors, [])

    def test_a_narrow_dark_screen_has_no_sideways_scroll(self):
        page = self.open(viewport={"width": 380, "height": 800}, color_scheme="dark")
        wide = page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth")
        self.assertFalse(wide)
        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        self.assertEqual(ground, "rgb(20, 23, 27)")

    def test_escape_stops_and_an_error_is_shown(self):
        page = self.open()
        page.locator("#max").fill("4096")
        page.locator("#prompt").press("Control+Enter")
        page.locator("#fast .token").first.wait_for(timeout=60_000)
        page.keyboard.press("Escape")
        page.locator("#status", has_text="Stopped").wait_for()
        page.locator("#temperature").fill("9")
        page.locator("#prompt").press("Control+Enter")
        page.locator("#status.bad", has_text="temperature").wait_for()

    def test_a_model_that_is_served_no_more_is_forgotten(self):
        page = self.open()
        page.wait_for_function("model")
        page.evaluate("() => { model = 'gone'; }")
        page.locator("#prompt").press("Control+Enter")
        page.locator("#status.bad", has_text="'gone' does not exist").wait_for()
        page.locator("#prompt").press("Control+Enter")
        page.locator("#status", has_text="Done").wait_for(timeout=60_000)


if __name__ == "__main__":
    assert BIN.is_dir()
    unittest.main()
