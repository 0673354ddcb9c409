// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/linear.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "core/kernels/cuda/kernel_test.h"
#include "core/kernels/cuda/runtime.h"

namespace outrider::kernels::cuda {
namespace {

std::vector<float> Scaled(std::vector<float> values, float scale) {
  for (float& value : values) value *= scale;
  return values;
}

using Product = void(const LinearArgs& args, Stream stream);
// Linear chooses between its kernels by what is faster.
constexpr Product* kProducts[] = {Linear, LinearOfManyRows};

// A layer of random weights on the device, and a reference.
class Layer {
 public:
  Layer(Element element, uint32_t data, int out, int in, int num_parts = 1,
        float scale = 1.0f)
      : element_(element),
        out_(out),
        in_(in),
        weights_(Round(
            element, Scaled(RandomValues(size_t(out) * in, data + 3), scale))),
        bias_(RandomValues(out, data + 5)),
        device_bias_(bias_),
        tiles_(PackedBytes(out, in) / sizeof(uint16_t)) {
    ZeroMemory(tiles_.data(), PackedBytes(out, in), nullptr);
    const DeviceArray<uint16_t> rows(weights_.bits);
    const int part = out / num_parts;
    for (int i = 0; i < num_parts; ++i) {
      const auto placement = num_parts == 1 ? Placement::kConsecutive
                             : i == 0       ? Placement::kGate
                                            : Placement::kUp;
      Pack({element_, rows.data() + size_t(i) * part * in, part, in, placement,
            0, tiles_.data()},
           nullptr);
    }
    EXPECT_EQ(Synchronize(nullptr), "");
  }

  LinearArgs Args(const DeviceArray<uint16_t>& x, int num_rows,
                  Epilogue epilogue, void* y) const {
    return {.weight = {element_, tiles_.data(), out_, in_},
            .x = x.data(),
            .bias = device_bias_.data(),
            .num_rows = num_rows,
            .epilogue = epilogue,
            .y = y};
  }

  // Rows [first, first + count) of x in one pass.
  std::vector<float> Run(const Rounded& x, int first, int count,
                         Product* product = Linear) const {
    const auto begin = x.bits.begin() + ptrdiff_t(first) * in_;
    const DeviceArray<uint16_t> rows(
        std::vector<uint16_t>(begin, begin + ptrdiff_t(count) * in_));
    const DeviceArray<float> y(size_t(count) * out_);
    product(Args(rows, count, Epilogue::kStore, y.data()), nullptr);
    return y.Read();
  }

  // The sum in double; `scale` becomes that of magnitudes.
  double Reference(const Rounded& x, int row, int output, double* scale) const {
    double sum = 0.0;
    *scale = 0.0;
    for (int k = 0; k < in_; ++k) {
      const double product = double{x.values[size_t(row) * in_ + k]} *
                             weights_.values[size_t(output) * in_ + k];
      sum += product;
      *scale += std::abs(product);
    }
    return sum;
  }
  double bias(int output) const { return bias_[output]; }

 private:
  Element element_;
  int out_;
  int in_;
  Rounded weights_;
  std::vector<float> bias_;
  DeviceArray<float> device_bias_;
  DeviceArray<uint16_t> tiles_;
};

class CudaLinearTest : public KernelTest {
 protected:
  Rounded Inputs(int num_rows, int in) const {
    return Round(element(), RandomValues(size_t(num_rows) * in, data() + 7));
  }

  // A pass of the first rows of x gives what double precision does.
  void ExpectReference(const Layer& layer, const Rounded& x, int num_rows,
                       Product* product = Linear) const {
    const auto y = layer.Run(x, 0, num_rows, product);
    const int out = static_cast<int>(y.size()) / num_rows;
    for (int i = 0; i < num_rows * out; ++i) {
      double scale = 0.0;
      const double sum = layer.Reference(x, i / out, i % out, &scale);
      ASSERT_NEAR(y[i], sum + layer.bias(i % out), 1e-6 * scale + 1e-6)
          << num_rows << " rows of " << out << " outputs, place " << i;
    }
  }
};
OUTRIDER_INSTANTIATE_KERNEL_TEST(CudaLinearTest);

// Outputs end inside a tile or with it; inputs end inside a chunk, a slice and
// a round of loads or with them.
TEST_P(CudaLinearTest, AgreesWithDoublePrecisionForOddSizes) {
  for (const int out : {1, 7, 16, 25, 50}) {
    for (const int in : {8, 32, 40, 264, 1304}) {
      SCOPED_TRACE(in);
      const Layer layer(element(), data(), out, in);
      const Rounded x = Inputs(5, in);
      for (const int num_rows : {1, 5}) ExpectReference(layer, x, num_rows);
    }
  }
}

// Every place of a warp's ring is filled several times, whatever its length.
TEST_P(CudaLinearTest, AgreesWithDoublePrecisionForManyInputs) {
  constexpr int kIn = 4104;
  const Layer layer(element(), data(), /*out=*/20, kIn);
  const Rounded x = Inputs(40, kIn);
  for (const int num_rows : {1, 9, 17, 40}) ExpectReference(layer, x, num_rows);
  ExpectReference(layer, x, /*num_rows=*/40, LinearOfManyRows);
}

// Several blocks of outputs, whatever a block has.
TEST_P(CudaLinearTest, AgreesWithDoublePrecisionForManyOutputs) {
  constexpr int kIn = 1032;
  const Layer layer(element(), data(), /*out=*/200, kIn);
  const Rounded x = Inputs(33, kIn);
  for (const int num_rows : {1, 8, 16, 17, 33}) {
    ExpectReference(layer, x, num_rows);
  }
  ExpectReference(layer, x, /*num_rows=*/33, LinearOfManyRows);
}

// Where Linear takes the kernel for many rows.
TEST_P(CudaLinearTest, AgreesWithDoublePrecisionWhereManyRowsFillADevice) {
  constexpr int kIn = 8, kRows = 66;
  // One wave of blocks for many rows, five of those for few.
  const int out = 80 * NumProcessors() - 3;
  EXPECT_TRUE(TakesManyRows({.weight = {.out = out}, .num_rows = kRows},
                            NumProcessors()));
  const Layer layer(element(), data(), out, kIn);
  ExpectReference(layer, Inputs(kRows, kIn), kRows);
}

// Products of 8B and 1B models on an H100, and some on smaller devices.
TEST(CudaLinearChoiceTest, ManyRowsAreTakenWhereTheirWavesAreFaster) {
  struct Case {
    int outputs;
    int num_rows;
    bool takes_many;
    int num_processors = 132;
  };
  constexpr int kQkv = 6144, kHidden = 4096, kUp = 28672, kHead = 128256;
  for (const Case& c : {
           Case{kHead, 64, false},
           Case{kHead, 65, true},
           // One wave and three, then five, six; two and eight, nine, twelve.
           Case{kQkv, 128, false},
           Case{kQkv, 192, true},
           Case{kQkv, 256, true},
           Case{kQkv, 320, false},
           Case{kQkv, 384, true},
           Case{kQkv, 512, true},
           // One wave and two, three, four, five, eight.
           Case{kHidden, 128, false},
           Case{kHidden, 192, false},
           Case{kHidden, 256, false},
           Case{kHidden, 320, true},
           Case{kHidden, 512, true},
           Case{kUp, 65, true},
           Case{kUp, 192, true},
           Case{kHidden / 2, 512, false},
           Case{kQkv / 2, 512, true},
           // Two waves and ten; one and five; one and four; a block at a time.
           Case{kHidden, 512, true, 108},
           Case{kHidden / 2, 128, true, 31},
           Case{kHidden / 2, 128, false, 32},
           Case{32, 128, false, 1},
           Case{128, 128, true, 1},
       }) {
    const LinearArgs args = {.weight = {.out = c.outputs},
                             .num_rows = c.num_rows};
    EXPECT_EQ(TakesManyRows(args, c.num_processors), c.takes_many)
        << c.num_rows << " rows of " << c.outputs << " outputs on "
        << c.num_processors;
  }
}

// Three tiles of outputs, where many rows take two at a time; the last one is
// whole or not.
TEST_P(CudaLinearTest, AgreesWithDoublePrecisionForAnyNumberOfRows) {
  constexpr int kIn = 136;
  const Rounded x = Inputs(150, kIn);
  for (const int out : {40, 48}) {
    const Layer layer(element(), data(), out, kIn);
    for (int num_rows = 1; num_rows <= 17; ++num_rows) {
      ExpectReference(layer, x, num_rows);
    }
    for (const int num_rows : {32, 33, 64, 65, 150}) {
      ExpectReference(layer, x, num_rows);
    }
    for (const int num_rows : {1, 64, 150}) {
      ExpectReference(layer, x, num_rows, LinearOfManyRows);
    }
  }
}

TEST_P(CudaLinearTest, ARowHasTheSameBitsWhateverStandsBesideIt) {
  constexpr int kOut = 40, kIn = 2072, kRows = 70;
  const Layer layer(element(), data(), kOut, kIn);
  const Rounded x = Inputs(kRows, kIn);
  const auto all = layer.Run(x, 0, kRows, LinearOfManyRows);
  for (const int first : {0, 1, 3, 5}) {
    for (const int count : {1, 2, 5, 8, 9, 16, 20, 33, 64}) {
      const auto some = layer.Run(x, first, count);
      EXPECT_EQ(std::memcmp(some.data(), &all[size_t(first) * kOut],
                            some.size() * sizeof(float)),
                0)
          << count << " rows from " << first;
    }
  }
}

// Slices that have no inputs add a zero, which makes a sum of -0 one of 0.
TEST_P(CudaLinearTest, BothKernelsHaveTheSameZeros) {
  constexpr int kOut = 24, kRows = 4;
  constexpr float kTiny = 1e-38f;  // products of two are rounded to zeros
  for (const int in : {8, 72, 200, 264}) {  // of eight slices 1, 3, 7 and all
    const Layer layer(element(), data(), kOut, in, /*num_parts=*/1, kTiny);
    const Rounded x = Round(
        element(), Scaled(RandomValues(size_t{kRows} * in, data() + 7), kTiny));
    const DeviceArray<uint16_t> inputs(x.bits);
    std::vector<std::vector<uint32_t>> bits;
    for (Product* const product : kProducts) {
      const DeviceArray<uint32_t> y(size_t{kRows} * kOut);
      LinearArgs args = layer.Args(inputs, kRows, Epilogue::kStore, y.data());
      args.bias = nullptr;
      product(args, nullptr);
      bits.push_back(y.Read());
    }
    EXPECT_EQ(bits[0], bits[1]) << in;
  }
}

TEST_P(CudaLinearTest, TheResidualStreamIsAddedTo) {
  constexpr int kOut = 24, kIn = 64;
  const Layer layer(element(), data(), kOut, kIn);
  for (const int num_rows : {1, 3, 9, 21, 66}) {
    const Rounded x = Inputs(num_rows, kIn);
    const auto before = RandomValues(size_t(num_rows) * kOut, data() + 11);
    const auto plain = layer.Run(x, 0, num_rows);
    for (Product* const product : kProducts) {
      const DeviceArray<uint16_t> inputs(x.bits);
      const DeviceArray<float> sum(before);
      product(layer.Args(inputs, num_rows, Epilogue::kAdd, sum.data()),
              nullptr);
      const auto after = sum.Read();
      for (int i = 0; i < num_rows * kOut; ++i) {
        EXPECT_EQ(after[i], before[i] + plain[i]) << num_rows << " rows, " << i;
      }
    }
  }
}

TEST_P(CudaLinearTest, GateAndUpMeetInTheEpilogue) {
  for (const int size : {8, 20, 37}) {
    constexpr int kIn = 72, kRows = 21;
    const Layer layer(element(), data(), 2 * size, kIn, /*num_parts=*/2);
    const Rounded x = Inputs(kRows, kIn);
    const DeviceArray<uint16_t> inputs(x.bits);
    const DeviceArray<uint16_t> y(size_t{kRows} * size);
    Linear(layer.Args(inputs, kRows, Epilogue::kSiluMul, y.data()), nullptr);
    const auto bits = y.Read();
    LinearOfManyRows(layer.Args(inputs, kRows, Epilogue::kSiluMul, y.data()),
                     nullptr);
    EXPECT_EQ(y.Read(), bits);
    const auto got = ValuesOf(element(), bits);
    for (int i = 0; i < kRows * size; ++i) {
      double scale = 0.0;
      const double gate =
          layer.Reference(x, i / size, i % size, &scale) + layer.bias(i % size);
      const double up = layer.Reference(x, i / size, size + i % size, &scale) +
                        layer.bias(size + i % size);
      const double expected = gate / (1.0 + std::exp(-gate)) * up;
      ASSERT_NEAR(got[i], expected, 1.5 * unit() * std::abs(expected) + 2e-5)
          << size << " outputs, place " << i;
    }
  }
}

TEST_P(CudaLinearTest, GeluIsTheTanhApproximation) {
  constexpr int kOut = 20, kIn = 40;
  const Layer layer(element(), data(), kOut, kIn);
  for (const int num_rows : {1, 2, 9, 21, 66}) {
    const Rounded x = Inputs(num_rows, kIn);
    const DeviceArray<uint16_t> inputs(x.bits);
    const DeviceArray<uint16_t> y(size_t(num_rows) * kOut);
    for (Product* const product : kProducts) {
      product(layer.Args(inputs, num_rows, Epilogue::kGelu, y.data()), nullptr);
      const auto got = ValuesOf(element(), y.Read());
      for (int i = 0; i < num_rows * kOut; ++i) {
        double scale = 0.0;
        const double z = layer.Reference(x, i / kOut, i % kOut, &scale) +
                         layer.bias(i % kOut);
        const double inner = std::sqrt(2.0 / M_PI) * (z + 0.044715 * z * z * z);
        const double expected = 0.5 * z * (1.0 + std::tanh(inner));
        ASSERT_NEAR(got[i], expected, 1.5 * unit() * std::abs(expected) + 2e-5)
            << num_rows << " rows, place " << i;
      }
    }
  }
}

// Queries, keys and values are parts of one matrix, of sizes that end inside
// its tiles.
TEST_P(CudaLinearTest, PartsOfAMatrixLieOneAfterTheOther) {
  constexpr int kIn = 24, kOut = 45;
  const Rounded rows = Round(
      element(), Scaled(RandomValues(size_t{kOut} * kIn, data() + 3), 2.0f));
  const DeviceArray<uint16_t> all(rows.bits);
  const size_t size = PackedBytes(kOut, kIn);
  const auto pack = [&](const std::vector<int>& parts) {
    const DeviceArray<uint16_t> tiles(size / sizeof(uint16_t));
    ZeroMemory(tiles.data(), size, nullptr);
    int first = 0;
    for (const int part : parts) {
      Pack({element(), all.data() + size_t(first) * kIn, part, kIn,
            Placement::kConsecutive, first, tiles.data()},
           nullptr);
      first += part;
    }
    return tiles.Read();
  };
  EXPECT_EQ(pack({20, 13, 12}), pack({kOut}));
}

// A grid's y ends at 65535; a vocabulary does not, so Pack takes it in pieces.
TEST(CudaPackTest, APartMayHaveMoreRowsThanAGrid) {
  constexpr int kIn = 8, kMost = 32768 + 19;
  struct Part {
    int num_rows;
    bool is_up;
  };
  for (const Part part :
       {Part{32768, false}, Part{kMost, false}, Part{kMost, true}}) {
    const int num_rows = part.num_rows;
    const Rounded rows =
        Round(Element::kBFloat16, RandomValues(size_t{kIn} * num_rows, 3));
    const DeviceArray<uint16_t> all(rows.bits);
    const size_t size = PackedBytes(part.is_up ? 2 * num_rows : num_rows, kIn);
    const DeviceArray<uint16_t> tiles(size / sizeof(uint16_t));
    ZeroMemory(tiles.data(), size, nullptr);
    Pack({Element::kBFloat16, all.data(), num_rows, kIn,
          part.is_up ? Placement::kUp : Placement::kConsecutive, 0,
          tiles.data()},
         nullptr);
    const auto got = tiles.Read();
    for (const int row : {0, 9, 32759, 32767, 32768, 32776, kMost - 1}) {
      if (row >= num_rows) continue;
      const int output = part.is_up ? row / 8 * 16 + 8 + row % 8 : row;
      // Lane g * 4 has the row's first two inputs, of operand 0.
      const int place = output % 16;
      const int word = output / 16 * 256 + place % 8 * 16 + place / 8;
      const int first = 2 * word;
      EXPECT_EQ(got[first], rows.bits[size_t(row) * kIn]) << row;
      EXPECT_EQ(got[first + 1], rows.bits[size_t(row) * kIn + 1]) << row;
    }
  }
}

// One block of threads has 2048 of a row's numbers.
TEST_P(CudaLinearTest, AnEmbeddingIsTheRowOfItsToken) {
  constexpr int kVocabulary = 37;
  const std::vector<int> tokens = {36, 0, 17, 8, 17};
  const std::vector<int> places = {2, 0, 1, 3, 0};
  const DeviceArray<int> device_tokens(tokens), device_places(places);
  for (const int size : {40, 2072}) {
    const auto width = static_cast<size_t>(size);
    const Rounded rows =
        Round(element(), RandomValues(size_t{kVocabulary} * size, data() + 3));
    const DeviceArray<uint16_t> checkpoint(rows.bits);
    const size_t bytes = PackedBytes(kVocabulary, size);
    const DeviceArray<uint16_t> tiles(bytes / sizeof(uint16_t));
    ZeroMemory(tiles.data(), bytes, nullptr);
    Pack({element(), checkpoint.data(), kVocabulary, size,
          Placement::kConsecutive, 0, tiles.data()},
         nullptr);
    const auto learned = RandomValues(size_t{4} * size, data() + 13);
    const DeviceArray<float> positions(learned);
    for (const bool is_learned : {false, true}) {
      const DeviceArray<float> x(tokens.size() * size);
      Embed({.table = {element(), tiles.data(), kVocabulary, size},
             .tokens = device_tokens.data(),
             .positions = is_learned ? positions.data() : nullptr,
             .row_positions = device_places.data(),
             .num_rows = static_cast<int>(tokens.size()),
             .x = x.data()},
            nullptr);
      const auto got = x.Read();
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t row = i / width, column = i % width;
        const float expected = rows.values[tokens[row] * width + column];
        const float shift = learned[places[row] * width + column];
        EXPECT_EQ(got[i], is_learned ? expected + shift : expected) << i;
      }
    }
  }
}

}  // namespace
}  // namespace outrider::kernels::cuda
