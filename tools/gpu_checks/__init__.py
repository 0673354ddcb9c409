# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu_check is made of."""
