// SPDX-License-Identifier: Apache-2.0
// What the emulation must accept, and what it must find.
#include <cmath>
#include <string>
#include <vector>

#include "core/kernels/cuda/async_copy.h"
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/mma.h"
#include "core/kernels/cuda/next_kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::kernels::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kThreads = 64;

enum class Mistake {
  kNone,
  kMissingBarrier,
  kBarrierForHalf,
  kTwoBarriers,
  kEarlyReturn,
  kShuffleForHalf,
  kShuffleOutsideMask,
  kMissingWarpBarrier,
  kOverwrittenTooEarly,
  kUnwritten,
};

// Reverses numbers over a block and adds those of the neighbour lanes, twice.
__global__ void Reverse(Mistake mistake, float* out) {
  OUTRIDER_SHARED(float[kThreads], tile);
  OUTRIDER_DYNAMIC_SHARED(float, pairs);
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int round = 0; round < 2; ++round) {
    if (mistake != Mistake::kUnwritten || thread != 7) {
      tile[thread] = static_cast<float>(thread + round);
    }
    if (mistake == Mistake::kEarlyReturn && thread == 3) return;
    if (mistake == Mistake::kBarrierForHalf) {
      if (thread < 32) __syncthreads();
    } else if (mistake == Mistake::kTwoBarriers && thread < 32) {
      __syncthreads();
    } else if (mistake != Mistake::kMissingBarrier) {
      __syncthreads();
    }
    sum += tile[kThreads - 1 - thread];
    if (mistake != Mistake::kOverwrittenTooEarly) __syncthreads();
  }
  pairs[thread] = sum;
  if (mistake != Mistake::kMissingWarpBarrier) __syncwarp();
  sum += pairs[thread ^ 1];
  if (mistake == Mistake::kShuffleForHalf) {
    if (thread % 2 == 0) sum += __shfl_xor_sync(kAllLanes, sum, 2);
  } else if (thread % 32 < 16) {
    const int bits = mistake == Mistake::kShuffleOutsideMask ? 16 : 2;
    sum += __shfl_xor_sync(0xFFFFu, sum, bits);
  }
  out[thread] = sum;
}

struct Outcome {
  std::string failure;
  bool is_right;
};

Outcome RunReverse(Mistake mistake, uint64_t seed) {
  emulation::SetSeed(seed);
  std::vector<float> out(kThreads, NAN);
  Launch(1, kThreads, kThreads * sizeof(float), nullptr, Reverse, mistake,
         out.data());
  const auto reversed = [](int i) {
    return static_cast<float>(2 * (kThreads - 1 - i) + 1);
  };
  const auto pair = [&](int i) { return reversed(i) + reversed(i ^ 1); };
  bool is_right = true;
  for (int i = 0; i < kThreads; ++i) {
    const float expected = i % 32 < 16 ? pair(i) + pair(i ^ 2) : pair(i);
    is_right = is_right && out[i] == expected;
  }
  return {emulation::TakeFailure(), is_right};
}

TEST(EmulationTest, ACorrectKernelComesOutRightInEveryOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome outcome = RunReverse(Mistake::kNone, seed);
    EXPECT_EQ(outcome.failure, "");
    EXPECT_TRUE(outcome.is_right);
  }
}

TEST(EmulationTest, AWrongOrderOfThreadsShowsInTheResult) {
  for (const Mistake mistake :
       {Mistake::kMissingBarrier, Mistake::kMissingWarpBarrier,
        Mistake::kOverwrittenTooEarly}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      EXPECT_FALSE(RunReverse(mistake, seed).is_right) << int(mistake);
    }
  }
}

__global__ void AwaitBut(int forgetful) {
  if (static_cast<int>(threadIdx.x) != forgetful) AwaitPreviousKernel();
}

TEST(EmulationTest, AKernelThatBeginsEarlyAwaitsThePreviousOneInEachThread) {
  LaunchEarly(2, kThreads, 0, nullptr, AwaitBut, kThreads);
  EXPECT_EQ(emulation::TakeFailure(), "");
  LaunchEarly(2, kThreads, 0, nullptr, AwaitBut, kThreads - 1);
  EXPECT_THAT(emulation::TakeFailure(),
              HasSubstr("a thread does not await the previous kernel"));
}

// Twice the number of warps, by the same scratch: a warp that is through with
// its lanes' meetings may write for the second time before others have read.
__global__ void CountWarpsTwice(bool has_barrier, float* out) {
  constexpr int kWarps = kThreads / 32;
  OUTRIDER_SHARED(float[kWarps], scratch);
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int round = 0; round < 2; ++round) {
    float mine = round == 0 ? 1.0f : 2.0f;
    for (int distance = 16; distance > 0; distance /= 2) {
      mine = fmaxf(mine, __shfl_xor_sync(kAllLanes, mine, distance));
    }
    if (thread % 32 == 0) scratch[thread / 32] = mine;
    __syncthreads();
    for (int i = 0; i < kWarps; ++i) sum += scratch[i];
    if (has_barrier) __syncthreads();
  }
  out[thread] = sum;
}

TEST(EmulationTest, AWarpThatHurriesOverwritesWhatOthersHaveNotRead) {
  const std::vector<float> right(kThreads, 3.0f * kThreads / 32);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    emulation::SetSeed(seed);
    for (const bool has_barrier : {false, true}) {
      std::vector<float> out(kThreads, NAN);
      Launch(1, kThreads, 0, nullptr, CountWarpsTwice, has_barrier, out.data());
      EXPECT_EQ(emulation::TakeFailure(), "");
      // Whether it shows where threads take turns is left to chance.
      if (has_barrier || seed % 2 == 0) {
        EXPECT_EQ(out == right, has_barrier) << seed;
      }
    }
  }
}

TEST(EmulationTest, SharedMemoryThatNobodyWroteIsNotANumber) {
  EXPECT_FALSE(RunReverse(Mistake::kUnwritten, 1).is_right);
}

TEST(EmulationTest, ThreadsThatPartAreReportedWithTheirPlaces) {
  for (const Mistake mistake :
       {Mistake::kBarrierForHalf, Mistake::kTwoBarriers, Mistake::kEarlyReturn,
        Mistake::kShuffleForHalf}) {
    const std::string failure = RunReverse(mistake, 1).failure;
    EXPECT_THAT(failure, HasSubstr("threads part")) << int(mistake);
    EXPECT_THAT(failure, HasSubstr("emulation_test.cc:"));
  }
}

TEST(EmulationTest, AShuffleReadsOnlyLanesOfItsMask) {
  EXPECT_THAT(RunReverse(Mistake::kShuffleOutsideMask, 1).failure,
              HasSubstr("outside its mask"));
}

TEST(EmulationTest, AFailureEndsTheLaunchAndNotTheNext) {
  EXPECT_THAT(RunReverse(Mistake::kEarlyReturn, 1).failure, Not(""));
  EXPECT_EQ(RunReverse(Mistake::kNone, 1).failure, "");
}

TEST(EmulationTest, ALaunchThatNoDeviceTakesFails) {
  float out = 0.0f;
  Launch(1, 1025, 0, nullptr, Reverse, Mistake::kNone, &out);
  EXPECT_THAT(emulation::TakeFailure(), HasSubstr("limits"));
  Launch(dim3(1, 65536), 32, 0, nullptr, Reverse, Mistake::kNone, &out);
  EXPECT_THAT(emulation::TakeFailure(), HasSubstr("limits"));
  Launch(1, 32, 100 << 10, nullptr, Reverse, Mistake::kNone, &out);
  EXPECT_THAT(emulation::TakeFailure(), HasSubstr("limits"));
}

// A kernel with so many bytes of static shared memory.
template <int kBytes>
__global__ void TakeShared() {
  OUTRIDER_SHARED(char[kBytes], own);
  OUTRIDER_DYNAMIC_SHARED(char, rest);
  own[0] = rest[0] = 'x';
}

TEST(EmulationTest, SharedMemoryOfAKernelsOwnCountsAsWell) {
  const auto run = [](auto kernel, size_t dynamic_bytes) {
    Launch(1, 32, dynamic_bytes, nullptr, kernel);
    return emulation::TakeFailure();
  };
  constexpr size_t kKiB = 1 << 10;
  for (int time = 1; time <= 2; ++time) {
    EXPECT_EQ(run(TakeShared<4096>, 95 * kKiB), "");
    EXPECT_THAT(run(TakeShared<4096>, 95 * kKiB + 1),
                HasSubstr("more shared memory"));
    // A launch of little dynamic memory asks for no more than all may have.
    EXPECT_EQ(run(TakeShared<16384>, 32 * kKiB), "");
    EXPECT_THAT(run(TakeShared<16385>, 32 * kKiB),
                HasSubstr("more shared memory"));
  }
}

// Each thread passes two times four numbers through shared memory, and reads
// them when `kLeft` of the two may still be on their way.
template <int kLeft>
__global__ void PassRows(const float* rows, bool is_second_there, float* out) {
  OUTRIDER_DYNAMIC_SHARED(uint4, places);
  const int thread = static_cast<int>(threadIdx.x);
  const auto* from = reinterpret_cast<const uint4*>(rows);
  CopyAsync<Reuse::kNone>(places + thread, from + thread);
  EndCopyGroup();
  CopyAsync<Reuse::kByOtherBlocks>(places + kThreads + thread,
                                   from + kThreads + thread, is_second_there);
  EndCopyGroup();
  WaitForCopies<kLeft>();
  const uint4 first = places[thread], second = places[kThreads + thread];
  out[thread] = __uint_as_float(first.w);
  out[kThreads + thread] = __uint_as_float(second.w);
  if (kLeft < 2) WaitForCopies<0>();
}

TEST(EmulationTest, ACopyIsThereOnceItsGroupWasWaitedForAndNotBefore) {
  std::vector<float> rows(2 * kThreads * 4);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  std::vector<float> out(2 * kThreads);
  const auto run = [&](auto kernel, bool is_second_there) {
    Launch(1, kThreads, 2 * kThreads * sizeof(uint4), nullptr, kernel,
           rows.data(), is_second_there, out.data());
    return emulation::TakeFailure();
  };
  constexpr size_t kSecond = kThreads + 5;
  EXPECT_EQ(run(PassRows<0>, true), "");
  EXPECT_EQ(out[5], rows[5 * 4 + 3]);
  EXPECT_EQ(out[kSecond], rows[kSecond * 4 + 3]);
  EXPECT_EQ(run(PassRows<0>, false), "");
  EXPECT_EQ(out[kSecond], 0.0f);
  EXPECT_EQ(run(PassRows<1>, true), "");
  EXPECT_EQ(out[5], rows[5 * 4 + 3]);
  EXPECT_TRUE(std::isnan(out[kSecond]));
  EXPECT_THAT(run(PassRows<2>, true), HasSubstr("does not wait for a copy"));
}

__global__ void AskTwice(const float* rows, int num_waits) {
  OUTRIDER_DYNAMIC_SHARED(uint4, places);
  for (int i = 0; i < 2; ++i) {
    CopyAsync<Reuse::kNone>(places + threadIdx.x,
                            reinterpret_cast<const uint4*>(rows) + threadIdx.x);
    EndCopyGroup();
    if (i < num_waits) WaitForCopies<0>();
  }
  WaitForCopies<0>();
}

__global__ void LoadQuad(const float* from, float* to) {
  const float4 quad = __ldg(reinterpret_cast<const float4*>(from));
  to[threadIdx.x] = quad.y;
}

__global__ void CopyQuad(const float* from, float* to) {
  OUTRIDER_SHARED(uint4[kThreads], quads);
  uint4* const mine = &quads[static_cast<int>(threadIdx.x)];
  CopyAsync<Reuse::kNone>(mine, reinterpret_cast<const uint4*>(from));
  EndCopyGroup();
  WaitForCopies<0>();
  to[threadIdx.x] = __uint_as_float(mine->y);
}

TEST(EmulationTest, ALoadIsFromAMultipleOfItsSize) {
  alignas(16) const float from[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const auto kernel : {LoadQuad, CopyQuad}) {
    std::vector<float> to(kThreads);
    Launch(dim3(1), kThreads, 0, nullptr, kernel, &from[4], to.data());
    EXPECT_EQ(emulation::TakeFailure(), "");
    EXPECT_EQ(to, std::vector<float>(kThreads, 5));
    Launch(dim3(1), kThreads, 0, nullptr, kernel, &from[2], to.data());
    EXPECT_THAT(emulation::TakeFailure(),
                HasSubstr("an address that is no multiple of its size"));
  }
}

TEST(EmulationTest, AThreadAsksForOneCopyToAPlaceAtATime) {
  const std::vector<float> rows(size_t{kThreads} * 4);
  const auto run = [&](int num_waits) {
    Launch(1, kThreads, kThreads * sizeof(uint4), nullptr, AskTwice,
           rows.data(), num_waits);
    return emulation::TakeFailure();
  };
  EXPECT_EQ(run(1), "");
  EXPECT_THAT(run(0), HasSubstr("where another one is on its way"));
}

// D = A * B, with operands loaded as the PTX ISA says who holds what.
template <typename T>
__global__ void Multiply(const uint16_t* a, const uint16_t* b, float* d) {
  const int lane = static_cast<int>(threadIdx.x);
  const int g = lane / 4, t = lane % 4;
  const auto pair = [](const uint16_t* from, int stride) {
    return from[0] | static_cast<uint32_t>(from[stride]) << 16;
  };
  FragmentA fragment_a;
  for (int i = 0; i < 4; ++i) {
    const int row = g + i % 2 * 8, k = 2 * t + i / 2 * 8;
    fragment_a.a[i] = pair(a + row * 16 + k, 1);
  }
  FragmentB fragment_b;
  for (int i = 0; i < 2; ++i) {
    fragment_b.b[i] = pair(b + (2 * t + i * 8) * 8 + g, 8);
  }
  FragmentD sum = {};
  Mma<T>(sum, fragment_a, fragment_b);
  for (int i = 0; i < 4; ++i) {
    d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum.d[i];
  }
}

template <typename T>
void ExpectProduct() {
  std::vector<uint16_t> a, b;
  for (int i = 0; i < 256; ++i) {
    a.push_back(FromFloat<T>(static_cast<float>(i * 7 % 13 - 6)).bits);
  }
  for (int i = 0; i < 128; ++i) {
    b.push_back(FromFloat<T>(static_cast<float>(i * 5 % 11 - 5)).bits);
  }
  std::vector<float> d(128, NAN);
  Launch(1, 32, 0, nullptr, Multiply<T>, a.data(), b.data(), d.data());
  ASSERT_EQ(emulation::TakeFailure(), "");
  for (int i = 0; i < 128; ++i) {
    float expected = 0.0f;
    for (int k = 0; k < 16; ++k) {
      expected += ToFloat(T{a[i / 8 * 16 + k]}) * ToFloat(T{b[k * 8 + i % 8]});
    }
    EXPECT_EQ(d[i], expected) << i;
  }
}

TEST(EmulationTest, AnMmaIsTheProductOfItsMatrices) {
  ExpectProduct<Bf16>();
  ExpectProduct<Half>();
}

TEST(EmulationTest, AFloat16RoundsToNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {  // all that are finite
    const float here = ToFloat(Half{static_cast<uint16_t>(bits)});
    const float next = ToFloat(Half{static_cast<uint16_t>(bits + 1)});
    ASSERT_EQ(FromFloat<Half>(here).bits, bits);
    ASSERT_EQ(FromFloat<Half>(-here).bits, bits | 0x8000u);
    const float middle = bits == 0x7BFF ? 65520.0f : (here + next) / 2;
    ASSERT_EQ(FromFloat<Half>(middle).bits, bits + bits % 2);
    ASSERT_EQ(FromFloat<Half>(std::nextafterf(middle, 0.0f)).bits, bits);
    ASSERT_EQ(FromFloat<Half>(std::nextafterf(middle, 1e9f)).bits, bits + 1);
  }
  EXPECT_TRUE(std::isnan(ToFloat(FromFloat<Half>(NAN))));
  EXPECT_TRUE(std::isnan(ToFloat(FromFloat<Bf16>(NAN))));
  EXPECT_EQ(ToFloat(FromFloat<Half>(-1e9f)), -INFINITY);
}

}  // namespace
}  // namespace outrider::kernels::cuda
