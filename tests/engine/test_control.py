"""Tokens: cancelled once, seen by all who hold them."""

from __future__ import annotations

import pytest

from kernelscope.base.errors import Cancelled
from kernelscope.engine.control import CancelToken, JointToken


def test_a_joint_token_follows_the_other() -> None:
    token = CancelToken()
    joint = JointToken(token)
    joint.check()
    assert not joint.cancelled
    token.cancel()
    assert joint.cancelled
    with pytest.raises(Cancelled):
        joint.check()


def test_a_joint_token_leaves_the_other_alone() -> None:
    token = CancelToken()
    joint = JointToken(token)
    joint.cancel()
    assert joint.cancelled
    with pytest.raises(Cancelled):
        joint.check()
    assert not token.cancelled
    token.check()
