# SPDX-License-Identifier: Apache-2.0
"""An OpenAI-compatible HTTP door before Outrider's coordinators.

A request comes in at `app`, is checked by `requests`, becomes one or more
`GenerateRequest`s in `translate`, runs through `generation` (which resumes it on
another coordinator where one breaks) and goes out through `replies` and `answers`.
"""
