"""What the agents' models may choose."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class HoldFare(BaseModel):
    """Hold this fare."""

    offer_id: str = Field(description="An offer_id of the offers.")


class NoFare(BaseModel):
    """None of the fares will do."""

    reason: Literal["no_fares", "over_budget", "too_late", "stops"] = Field(description="Why not.")


class SearchRooms(BaseModel):
    """Look for rooms on the flight's dates."""


class HoldRoom(BaseModel):
    """Hold this room."""

    offer_id: str = Field(description="An offer_id of the offers.")


class HandBack(BaseModel):
    """Hand the trip back to the flight agent."""

    reason: Literal["no_rooms", "over_budget", "flights"] = Field(description="Why.")
