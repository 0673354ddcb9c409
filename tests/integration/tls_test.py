# SPDX-License-Identifier: Apache-2.0
"""TLS between the real programs, with certificates made here, and --check-config."""
import json
import re
import shutil
import time
import unittest

from certificates import Authority
from programs import DRAFT, TARGET, ProgramTest, wait_until
from scraping import ScrapingTest

FAILED, BAD_FLAGS = 1, 2


class TlsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)

    def start_all(self):
        self.verifier = self.start_verifier(*self.authority.flags("verifier"))
        self.drafter = self.start_drafter(*self.authority.flags("drafter"))
        self.coordinator = self.start_coordinator(
            self.verifier.address(), self.drafter.address(), *self.authority.flags("coordinator"))
        self.address = self.coordinator.address()
        self.client = self.authority.flags("client")

    def wait_until_served(self):
        def served():
            table = self.start("outrider", "describe", "--coordinator", self.address, *self.client)
            table.wait()
            return "verifier " in table.out() and "drafter " in table.out()
        wait_until("the coordinator has found its nodes", served)

    def wait_until_renewed(self, times):
        servers = (self.verifier, self.drafter, self.coordinator)
        wait_until("all servers have read the new files",
                   lambda: all(one.err().count("TLS files have been renewed") >= times for one in servers))

    def test_all_links_can_be_mutual_tls(self):
        self.start_all()
        self.wait_until_served()

        def drafts_are_made():  # not for each stream: none waits for a drafter that gets no time to run
            program = self.generate(self.address, *self.client, "-k", "4", "--max-tokens", "40", "def f")
            self.assertEqual(program.wait(), 0, program.err())
            return re.search(r"of [1-9]\d* drafts accepted", program.err())
        wait_until("drafts are made", drafts_are_made, patience=120)

    def test_who_shows_no_certificate_or_a_strangers_is_refused(self):
        self.start_all()
        self.wait_until_served()
        stranger = Authority(self.folder, "stranger")
        ours = ["--tls-ca", self.authority.path]
        certificate, key = stranger.sign("intruder")
        expired, expired_key = self.authority.sign("expired", days=-1)
        for flags, words in (([], "pass --tls-ca"), (ours, "pass --tls-cert and --tls-key"),
                             ([*ours, "--tls-cert", certificate, "--tls-key", key], "does not take the certificate"),
                             (stranger.flags("intruder2"), "not signed by --tls-ca")):
            program = self.generate(self.address, *flags, "--max-tokens", "4", "--timeout", "20", "x")
            self.assert_refuses(program, FAILED, "no connection to the coordinator at", words)
            self.assertEqual(program.out(), "")
        wait_until("the coordinator's log says so", lambda: "a TLS handshake failed" in self.coordinator.err())
        self.assert_refuses(self.generate(self.address, *ours, "--tls-cert", expired,
                                          "--tls-key", expired_key, "x"), BAD_FLAGS, "has expired")

    def test_a_role_is_what_its_certificate_says(self):
        def flags(role):
            return self.authority.flags(role, hosts=[f"outrider-{role}"])
        verifier = self.start_verifier(*flags("verifier"), "--tls-clients", "outrider-coordinator")
        drafter = self.start_drafter(*flags("drafter"), "--tls-clients", "outrider-coordinator")
        # Calls a verifier with a drafter's certificate: signed, and of the wrong role.
        intruder = self.start_coordinator(verifier.address(), drafter.address(), *flags("drafter"))
        intruder.address()
        wait_until("it is refused", lambda: 'refused a client: its certificate is for '
                   '"localhost, outrider-drafter"' in verifier.err())
        wait_until("it is told", lambda: "is not used: does not answer: it hung up, and does not take the certificate"
                   in intruder.err())
        self.assertNotIn("is ready", intruder.err())
        self.coordinator = self.start_coordinator(
            verifier.address(), drafter.address(), *flags("coordinator"),
            "--tls-clients", "outrider-client", "--tls-clients", "spiffe://nobody")
        self.address, self.client = self.coordinator.address(), flags("client")
        self.wait_until_served()
        self.assertEqual(self.generate(self.address, *self.client, "--max-tokens", "4", "x").wait(), 0)
        refused = self.generate(self.address, *flags("verifier"), "--max-tokens", "4", "--timeout", "5", "x")
        self.assertEqual(refused.wait(), FAILED)
        self.assertIn("UNAVAILABLE", refused.err())

    def test_a_certificate_is_rotated_without_a_restart(self):
        self.start_all()
        self.wait_until_served()
        old = self.authority.path.read_bytes()
        new = Authority(self.folder, "new")
        # Both authorities while the change is on its way; then the old one goes.
        self.authority.path.write_bytes(new.path.read_bytes() + old)
        self.wait_until_renewed(1)
        for program in ("verifier", "drafter", "coordinator", "client"):
            certificate, key = new.sign(f"{program}-new")
            shutil.move(certificate, self.folder / f"{program}.pem")
            shutil.move(key, self.folder / f"{program}.key")
        self.wait_until_renewed(2)
        self.authority.path.write_bytes(new.path.read_bytes())
        self.wait_until_renewed(3)

        def new_connections_work():
            program = self.generate(self.address, *self.client, "--max-tokens", "4", "--timeout", "5", "x")
            return program.wait() == 0
        wait_until("a client with a new certificate is served", new_connections_work)


class BadRotationTest(ProgramTest):
    """A rotation that went wrong keeps the old pair in use, and the log says which file is to blame."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.coordinator = self.start_coordinator("127.0.0.1:1", None, *self.authority.flags("server"))
        self.address = self.coordinator.address()
        self.client = self.authority.flags("client")
        self.certificate, self.key = self.folder / "server.pem", self.folder / "server.key"

    def assert_takes_new_connections(self):
        program = self.start("outrider", "describe", "--coordinator", self.address, *self.client)
        self.assertEqual(program.wait(), 0, program.err())

    def replace(self, path, content):
        """Replaces it at once, as a rotation does: the new file takes the old one's name."""
        new = path.with_suffix(".new")
        new.write_bytes(content)
        new.rename(path)

    def test_the_pair_before_stays_until_the_files_are_mended(self):
        good = {path: path.read_bytes() for path in (self.certificate, self.key)}
        _, other_key = self.authority.sign("other")
        expired, expired_key = self.authority.sign("expired", days=-1)
        for damage, words in (({self.key: other_key.read_bytes()}, "server.key: is not the key of"),
                              ({self.certificate: b"garbage"}, "server.pem: holds no certificate"),
                              ({self.certificate: None}, "server.pem: cannot be read"),
                              ({self.certificate: expired.read_bytes(), self.key: expired_key.read_bytes()},
                               "server.pem: the certificate has expired")):
            with self.subTest(words=words):
                mended = self.coordinator.err().count("can be used again")
                for path, content in damage.items():
                    path.unlink() if content is None else self.replace(path, content)
                wait_until("the log names the file", lambda: words in self.coordinator.err())
                self.assertIn("those read before stay in use", self.coordinator.err())
                self.assert_takes_new_connections()
                for path, content in good.items():
                    self.replace(path, content)
                wait_until("it is mended", lambda: self.coordinator.err().count("can be used again") > mended)
                self.assert_takes_new_connections()

    def test_of_a_bundle_of_authorities_each_can_be_read_and_one_is_valid(self):
        good = self.authority.path.read_bytes()
        expired = self.authority.sign("expired", days=-1)[0].read_bytes()
        damaged = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        for bundle, words in ((b"garbage", "ca.pem: holds no certificate"), (expired, "ca.pem: the certificate has expired"),
                              (good + damaged, "ca.pem: certificate 2 of it is damaged")):
            with self.subTest(words=words):
                mended = self.coordinator.err().count("can be used again")
                self.replace(self.authority.path, bundle)
                wait_until("the log names the file", lambda: words in self.coordinator.err())
                self.replace(self.authority.path, expired + good)
                wait_until("it is mended", lambda: self.coordinator.err().count("can be used again") > mended)
                self.assert_takes_new_connections()

    def test_a_rotation_after_a_bad_one_is_taken_over(self):
        self.replace(self.certificate, b"garbage")
        wait_until("the log says so", lambda: "holds no certificate" in self.coordinator.err())
        new = Authority(self.folder, "new")
        certificate, key = new.sign("server-new")
        client = new.flags("client-new")
        self.replace(self.authority.path, new.path.read_bytes())
        self.replace(self.key, key.read_bytes())
        self.replace(self.certificate, certificate.read_bytes())

        def served():
            return self.start("outrider", "describe", "--coordinator", self.address, *client).wait() == 0
        wait_until("a client of the new authority is served", served)


class ExpiryTest(ScrapingTest):
    """/metrics of each program tells when the certificates in use expire."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)  # of two days

    def assert_days(self, program, **days):
        for file, number in days.items():
            end = self.value(program, "tls_certificate_expiration_timestamp_seconds", file=file.replace("_", "-"))
            self.assertEqual(round((end - time.time()) / 86400), number, file)

    def test_all_three_tell_and_see_a_renewal(self):
        certificate, key = self.authority.sign("first", days=90)
        flags = [*self.HTTP, "--tls-cert", certificate, "--tls-key", key, "--tls-ca", self.authority.path]
        programs = [self.start_coordinator("127.0.0.1:1", None, *flags), self.start_drafter(*flags),
                    self.start_verifier(*flags)]
        for program in programs:
            program.address()
            self.assert_days(program, tls_cert=90, tls_ca=2)
        renewed, renewed_key = self.authority.sign("renewed", days=30)
        shutil.move(renewed, certificate)
        for program in programs:
            self.assert_days(program, tls_cert=90)  # the key is still that of the pair before
        shutil.move(renewed_key, key)
        for program in programs:
            self.assert_days(program, tls_cert=30)

    def test_what_is_not_there_does_not_expire(self):
        program = self.start_coordinator("127.0.0.1:1", None, *self.HTTP)
        program.address()
        self.assertNotIn("tls_certificate", self.scrape(program))


class ConnectErrorTest(ProgramTest):
    """What keeps a client from its coordinator is said to the client, and in the coordinator's log."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.ours = ["--tls-ca", self.authority.path]

    def start_server(self, *flags):
        server = self.start_coordinator("127.0.0.1:1", None, *flags)
        return server, server.address()

    def assert_generate_says(self, address, flags, *words):
        self.assert_refuses(self.generate(address, *flags, "--timeout", "20", "x"),
                            FAILED, f"no connection to the coordinator at {address}", *words)

    def assert_said(self, address, flags, *words):
        self.assert_generate_says(address, flags, *words)
        # It asks again and again, and says what the first answer was.
        bench = self.start("outrider", "bench", "run", "--coordinator", address, *flags, "--out", self.folder / "results")
        self.assert_refuses(bench, FAILED, f"no connection to the coordinator at {address}", *words)

    def assert_logged(self, server, words):
        wait_until(f"it logs {words}", lambda: words in server.err())

    def test_a_plain_client(self):
        server, address = self.start_server(*self.authority.flags("server"))
        self.assert_said(address, [], "pass --tls-ca")
        self.assert_logged(server, "a TLS handshake failed: wrong version number: the peer speaks plain text")

    def test_a_client_without_a_certificate(self):
        server, address = self.start_server(*self.authority.flags("server"))
        self.assert_said(address, self.ours, "pass --tls-cert and --tls-key")
        self.assert_logged(server, "a TLS handshake failed: peer did not return a certificate")

    def test_a_client_of_another_authority(self):
        server, address = self.start_server(*self.authority.flags("server"))
        certificate, key = Authority(self.folder, "stranger").sign("intruder")
        self.assert_said(address, [*self.ours, "--tls-cert", certificate, "--tls-key", key],
                         "does not take the certificate", "intruder.pem")
        self.assert_logged(server, "a TLS handshake failed: certificate verify failed")

    def test_a_client_of_another_role(self):
        server, address = self.start_server(*self.authority.flags("server"), "--tls-clients", "nobody")
        self.assert_said(address, self.authority.flags("client"), "--tls-clients")
        self.assert_logged(server, 'and --tls-clients asks for "nobody"')

    def test_a_server_of_another_authority_of_another_name_and_without_tls(self):
        stranger = Authority(self.folder, "stranger")
        # These servers cannot know: gRPC's clients hang up, and send no alert.
        _, address = self.start_server(*self.authority.flags("server"))
        self.assert_said(address, stranger.flags("client"), "not signed by --tls-ca", "stranger.pem")
        _, address = self.start_server(*self.authority.flags("elsewhere", hosts=["elsewhere"], here=False))
        self.assert_said(address, self.authority.flags("client2"), "for another host")
        _, address = self.start_server()
        self.assert_said(address, self.authority.flags("client3"), "it speaks plain text")

    def test_a_thousand_strangers_do_not_fill_the_log(self):
        server, address = self.start_server(*self.authority.flags("server"))
        for _ in range(20):
            self.assert_generate_says(address, [], "pass --tls-ca")
        self.assertLess(server.err().count("a TLS handshake failed"), 20)


class NodeConnectErrorTest(ProgramTest):
    """What keeps a coordinator from a node is said in its log, and in the node's where the node can know it."""

    def setUp(self):
        super().setUp()
        self.authority, self.stranger = Authority(self.folder), Authority(self.folder, "stranger")
        self.ours = ["--tls-ca", self.authority.path]

    def assert_said(self, verifier, flags, reason, node_log=None):
        coordinator = self.start_coordinator(verifier.address(), None, *flags)
        words = f"{verifier.address()} is not used: does not answer: {reason}"
        wait_until(f"it logs {words}", lambda: words in coordinator.err())
        if node_log is not None:
            wait_until(f"the node logs {node_log}", lambda: f"a TLS handshake failed: {node_log}" in verifier.err())
        self.assertNotIn("failed to connect to all addresses", coordinator.err())  # gRPC's own words
        if "--tls-cert" not in flags:  # else it serves TLS itself
            self.assert_refuses(self.generate(coordinator.address(), "x"), FAILED, "no verifier is ready")

    def start_tls_verifier(self, **kind):
        return self.start_verifier(*self.authority.flags("verifier", **kind))

    def test_a_coordinator_without_tls(self):
        self.assert_said(self.start_tls_verifier(), [], "it hung up on a plain-text connection; if it speaks TLS, pass "
                         "--tls-ca", "wrong version number: the peer speaks plain text")

    def test_a_coordinator_without_a_certificate(self):
        self.assert_said(self.start_tls_verifier(), self.ours, "it hung up; if it asks for a certificate, pass "
                         "--tls-cert and --tls-key", "peer did not return a certificate")

    def test_a_coordinator_with_a_strangers_certificate(self):
        certificate, key = self.stranger.sign("intruder")
        self.assert_said(self.start_tls_verifier(), [*self.ours, "--tls-cert", certificate, "--tls-key", key],
                         f"it hung up, and does not take the certificate {certificate}", "certificate verify failed")

    def test_a_node_of_another_authority(self):
        # The node cannot know, here and below: gRPC's clients hang up, and send no alert.
        self.assert_said(self.start_tls_verifier(), self.stranger.flags("coordinator"),
                         f"its certificate is not valid, or not signed by --tls-ca {self.stranger.path}")

    def test_a_node_of_another_name(self):
        self.assert_said(self.start_tls_verifier(hosts=["elsewhere"], here=False), self.authority.flags("coordinator"),
                         "its certificate is for another host")

    def test_a_node_without_tls(self):
        self.assert_said(self.start_verifier(), self.authority.flags("coordinator"), "it speaks plain text")


class CheckConfigTest(ProgramTest):
    """--check-config serves nothing: 0 where the flags could be served, 2 and a reason elsewhere."""

    def check(self, name, *flags):
        return self.start(name, "--check-config", *flags)

    def assert_good(self, *words):
        program = self.check(*words)
        self.assertEqual(program.wait(), 0, program.err())
        self.assertNotIn("listening", program.out())

    def test_good_flags_of_all_three(self):
        tls = Authority(self.folder).flags("x")
        for name, flags in (("outrider-verifier", ["--model", TARGET, "--tls-clients", "outrider-coordinator"]),
                            ("outrider-drafter", ["--model", DRAFT, "--tls-clients", "outrider-coordinator"]),
                            ("outrider-coordinator", ["--verifier", "verifier:7002", "--tokenizer", TARGET])):
            self.assert_good(name, *flags, "--listen", "0.0.0.0:7000",
                             "--metrics-listen", "0.0.0.0:9090", "--log-json", *tls)

    def test_what_cannot_be_is_named(self):
        authority, other = Authority(self.folder), Authority(self.folder, "other")
        certificate, key = authority.sign("a")
        _, other_key = other.sign("b")
        coordinator = ("outrider-coordinator", ["--verifier", "127.0.0.1:1"])
        # All three have these flags and their checks from the same code: that each calls it is seen by the first row.
        nodes = (("outrider-verifier", ["--model", TARGET]), ("outrider-drafter", ["--model", DRAFT]))
        all_three = (*nodes, coordinator)
        for programs, flags, word in (
                (all_three, ["--listen", "0.0.0.0:7000"], "--insecure"),
                ([coordinator], ["--listn", "x"], "--listn"),
                ([coordinator], ["--metrics-listen", "9090"], "--metrics-listen needs HOST:PORT, such as"),
                ([coordinator], ["--metrics-listen", "unix:/run/x"], "--metrics-listen needs HOST:PORT, such as"),
                ([coordinator], ["--tls-cert", certificate], "--tls-key"),
                ([coordinator], ["--tls-cert", certificate, "--tls-key", other_key], "is not the key of"),
                ([coordinator], ["--tls-cert", key, "--tls-key", key], "no certificate"),
                ([coordinator], ["--tls-cert", certificate, "--tls-key", certificate], "no private key"),
                ([coordinator], ["--tls-ca", self.folder / "none.pem"], "none.pem: cannot be read"),
                ([coordinator], ["--tls-cert", certificate, "--tls-key", key, "--tls-clients", "a"], "--tls-clients"),
                (nodes, ["--device", "gpu0"], "gpu0"),
                (nodes, ["--device", "cuda:1", "--dtype", "float32"], "float32"),
                (nodes, ["--device", "cuda", "--kernels", "avx2"], "those of a CPU"),
                ([coordinator], ["--drain-seconds", "-1"], "--drain-seconds")):
            for name, needed in programs:
                with self.subTest(name=name, flags=flags):
                    self.assert_refuses(self.check(name, *needed, *flags), BAD_FLAGS, word)

    def test_flags_that_do_not_go_together_do_not_start_either(self):
        drafter, hash_flag = "outrider-drafter", ["--expect-weights", "5" * 64]
        for name, flags, word in (
                (drafter, ["--model", TARGET, "--strategy", "ngram", *hash_flag], "--expect-weights needs weights"),
                (drafter, ["--simulate", "--strategy", "ngram"], "not --strategy ngram"),
                (drafter, ["--simulate", *hash_flag], "--expect-weights needs weights"),
                ("outrider-verifier", ["--simulate", *hash_flag], "--expect-weights needs weights"),
                ("outrider-verifier", ["--model", TARGET, "--device", "cuda", "--kernels", "avx2"],
                 "are those of a CPU")):
            with self.subTest(name=name, flags=flags):
                self.assert_refuses(self.check(name, *flags), BAD_FLAGS, word)
                self.assert_refuses(self.start(name, *flags), BAD_FLAGS, word)

    def test_a_node_off_loopback_insists_on_coordinators(self):
        certificate, key = Authority(self.folder).sign("x")
        own = ["--tls-cert", certificate, "--tls-key", key]
        signed = [*own, "--tls-ca", self.folder / "ca.pem"]
        for name, model in (("outrider-verifier", TARGET), ("outrider-drafter", DRAFT)):
            node = [name, "--model", model, "--listen", "0.0.0.0:7002"]
            self.assert_refuses(self.check(*node, *own), BAD_FLAGS, "add --tls-ca", "--tls-clients")
            self.assert_refuses(self.check(*node, *signed), BAD_FLAGS, "add --tls-clients", "outrider-coordinator")
            self.assert_good(*node, *signed, "--tls-clients", "outrider-coordinator")
            self.assert_good(*node, *own, "--insecure")
            self.assert_good(name, "--model", model, *own)  # on loopback
        # Its clients are the public.
        self.assert_good("outrider-coordinator", "--verifier", "127.0.0.1:1", "--listen", "0.0.0.0:7000", *own)

    def test_a_bad_address_ends_a_program_as_a_bad_flag_does_without_check_config_too(self):
        for name, needed in (("outrider-verifier", ["--model", TARGET]),
                             ("outrider-drafter", ["--model", DRAFT]),
                             ("outrider-coordinator", ["--verifier", "127.0.0.1:1"])):
            self.assert_refuses(self.start(name, *needed, "--listen", "here"), BAD_FLAGS, "--listen needs HOST:PORT")
        self.assert_refuses(self.start("outrider-coordinator", "--verifier", "there"), BAD_FLAGS, "--verifier")

    def test_what_is_no_number_is_refused(self):
        simulate = ["--simulate"]
        for name, flag, others, values in (
                ("outrider-coordinator", "--draft-support-mass", ["--verifier", "127.0.0.1:1"],
                 ("nan", "-nan", "inf", "1e999")),
                ("outrider-coordinator", "--min-draft-probability", ["--verifier", "127.0.0.1:1"], ("nan",)),
                ("outrider-verifier", "--simulate-pass-ms", simulate, ("nan",)),
                ("outrider-verifier", "--simulate-row-ms", simulate, ("nan",)),
                ("outrider-drafter", "--simulate-acceptance", simulate, ("nan",))):
            for value in values:
                with self.subTest(flag=flag, value=value):
                    self.assert_refuses(self.check(name, *others, f"{flag}={value}"), BAD_FLAGS, flag, "needs a number")

    def test_weights_that_do_not_fit_their_config(self):
        model = self.folder / "model"
        shutil.copytree(DRAFT, model)
        for change, words in (({"num_hidden_layers": 99}, "the checkpoint lacks model.layers."),
                              ({"num_hidden_layers": 1}, "that config.json does not ask for"),
                              ({"intermediate_size": 64}, "but config.json asks for"),
                              ({"eos_token_id": -1}, "eos_token_id -1 is not in the vocabulary"),
                              ({"eos_token_id": 1 << 20}, "is not in the vocabulary")):
            config = json.loads((DRAFT / "config.json").read_text("utf-8"))
            (model / "config.json").write_text(json.dumps(config | change), "utf-8")
            with self.subTest(change=change):
                self.assert_refuses(self.check("outrider-drafter", "--model", model), BAD_FLAGS, words)
        # The same check, which each of the two has to ask for.
        self.assert_refuses(self.check("outrider-verifier", "--model", model), BAD_FLAGS, words)

    def test_a_tokenizer_that_is_not_the_models(self):
        model = self.folder / "model"
        shutil.copytree(TARGET, model)

        def set_tokens(change):
            tokenizer = json.loads((TARGET / "tokenizer.json").read_text("utf-8"))
            change(tokenizer)
            (model / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")

        def drop_last(tokenizer):
            vocabulary = tokenizer["model"]["vocab"]
            last = max(vocabulary, key=vocabulary.get)
            del vocabulary[last]
            tokenizer["model"]["merges"] = [pair for pair in tokenizer["model"]["merges"]
                                            if "".join(pair).replace(" ", "") != last]

        def assert_refused(*words):
            self.assert_refuses(self.check("outrider-verifier", "--model", model), BAD_FLAGS, *words)
            self.assert_refuses(self.start_verifier(model=model), 1, *words)
            self.assert_good("outrider-drafter", "--model", model, "--strategy", "ngram")

        set_tokens(lambda tokenizer: tokenizer["added_tokens"].append({"id": 4096, "content": "<more>"}))
        assert_refused("ids up to 4096", "only 4096 rows")
        set_tokens(drop_last)
        self.assert_good("outrider-verifier", "--model", model)
        (model / "generation_config.json").write_text('{"eos_token_id": 4095}', "utf-8")
        assert_refused("eos_token_id 4095", "tokenizer.json", "end at 4094")

    def test_files_that_are_not_there(self):
        (self.folder / "half").mkdir()
        shutil.copy(TARGET / "tokenizer.json", self.folder / "half")
        self.assert_refuses(self.check("outrider-verifier", "--model", self.folder / "none"), BAD_FLAGS, "none")
        self.assert_refuses(self.check("outrider-drafter", "--model", self.folder / "half"), BAD_FLAGS, "model.safetensors")
        self.assert_good("outrider-drafter", "--model", self.folder / "half", "--strategy", "ngram")
        self.assert_refuses(self.check("outrider-coordinator", "--verifier", "127.0.0.1:1",
                                       "--tokenizer", self.folder / "none"), BAD_FLAGS, "none")


if __name__ == "__main__":
    unittest.main()
