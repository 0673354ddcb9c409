// SPDX-License-Identifier: Apache-2.0
#include "bench/network/launch.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "bench/network/socket.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::bench {
namespace {

using ::outrider::testing::IsOk;
using ::testing::HasSubstr;

// The status that waitpid gives.
int StatusOf(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

// What was written to a file without a name.
std::string TextOf(const Socket& file) {
  std::array<char, 1000> buffer;
  const ssize_t size = pread(file.fd(), buffer.data(), buffer.size(), 0);
  return {buffer.data(), static_cast<size_t>(size)};
}

TEST(LaunchTest, AProgramHasASessionOfItsOwnAndTheFilesThatItIsGiven) {
  std::array<int, 2> fds = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  Socket ours(fds[0]);
  Socket theirs(fds[1]);
  const auto pid = Launch({"cat"}, {.files = {theirs.fd(), theirs.fd(), -1}});
  ASSERT_THAT(pid, IsOk());
  theirs.Close();
  char echoed = 0;
  ASSERT_EQ(write(ours.fd(), "x", 1), 1);
  ASSERT_EQ(read(ours.fd(), &echoed, 1), 1);
  EXPECT_EQ(echoed, 'x');
  EXPECT_EQ(getsid(*pid), *pid);
  ours.Close();
  EXPECT_EQ(StatusOf(*pid), 0);
}

TEST(LaunchTest, AProgramBlocksNoSignalWhateverItsParentBlocks) {
  const Socket output(memfd_create("output", MFD_CLOEXEC));
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    const auto pid = Launch({"/bin/grep", "SigBlk", "/proc/self/status"},
                            {.files = {-1, output.fd(), -1}});
    ASSERT_THAT(pid, IsOk());
    EXPECT_EQ(StatusOf(*pid), 0);
  }).join();
  EXPECT_EQ(TextOf(output), "SigBlk:\t0000000000000000\n");
}

TEST(LaunchTest, AProgramThatCannotRunSaysWhyAndExits) {
  const Socket errors(memfd_create("errors", MFD_CLOEXEC));
  const auto pid = Launch({"/no/program"}, {.files = {-1, -1, errors.fd()}});
  ASSERT_THAT(pid, IsOk());
  const int status = StatusOf(*pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 127);
  EXPECT_THAT(TextOf(errors), HasSubstr("/no/program: No such file"));
}

TEST(LaunchTest, AProgramThatMayNotRunOnItsCoresSaysSoAndExits) {
  cpu_set_t none;
  CPU_ZERO(&none);
  const Socket errors(memfd_create("errors", MFD_CLOEXEC));
  const auto pid =
      Launch({"cat"}, {.files = {-1, -1, errors.fd()}, .cores = none});
  ASSERT_THAT(pid, IsOk());
  EXPECT_EQ(WEXITSTATUS(StatusOf(*pid)), 127);
  EXPECT_THAT(TextOf(errors), HasSubstr("cores"));
}

TEST(LaunchTest, AForkedFunctionDiesWithTheThreadThatForkedIt) {
  absl::StatusOr<pid_t> pid;
  std::thread([&] {
    std::array<int, 2> fds = {};
    ASSERT_EQ(pipe(fds.data()), 0);
    const Socket read_end(fds[0]);
    const Socket write_end(fds[1]);
    pid = Fork([&] {
      (void)!write(write_end.fd(), "x", 1);
      while (true) pause();
    });
    // A thread that ended before would not be missed.
    char started = 0;
    ASSERT_EQ(read(read_end.fd(), &started, 1), 1);
  }).join();
  ASSERT_THAT(pid, IsOk());
  const int status = StatusOf(*pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

}  // namespace
}  // namespace outrider::bench
