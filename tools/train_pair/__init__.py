# SPDX-License-Identifier: Apache-2.0
"""Training of a target and of drafters for it; run it by tools/train_demo_pair.py."""
