// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SUSPECT_PLACES_H_
#define OUTRIDER_COORDINATOR_NODES_SUSPECT_PLACES_H_

#include <atomic>
#include <utility>

namespace outrider {

// A drafter's few places for this coordinator's sessions under whose calls a
// drafter was lost. Where it is lost too, those that are there are taken for
// what it died of, which costs them speed alone: so they are few. After any
// loss all that drafted are such sessions, and one at a time they would be
// without drafts for seconds: so there is more than one. Thread-safe.
class SuspectPlaces {
 public:
  static constexpr int kMost = 8;

  // One of them, for as long as this exists. It must end before they do.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : places_(std::exchange(other.places_, nullptr)) {}
    ~Place() {
      if (places_ != nullptr) --places_->num_taken_;
    }
    explicit operator bool() const { return places_ != nullptr; }

   private:
    friend class SuspectPlaces;
    explicit Place(SuspectPlaces* places) : places_(places) {}

    SuspectPlaces* places_ = nullptr;
  };

  // False of the place: all are taken.
  Place Take() {
    if (num_taken_++ < kMost) return Place(this);
    --num_taken_;
    return Place();
  }

 private:
  std::atomic<int> num_taken_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SUSPECT_PLACES_H_
