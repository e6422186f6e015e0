"""Which screens there are. Each is imported at its first visit, so that the window opens without them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.strings import mark

CONTEXT = "Screens"  # of the translations


@dataclass(frozen=True, slots=True)
class Place:
    """A row of the sidebar."""

    name: str
    label: str
    icon: str
    module: str
    screen: str

    def open(self, app: AppContext) -> Screen:
        made = getattr(importlib.import_module(self.module), self.screen)(app)
        assert isinstance(made, Screen)
        return made


PLACES = (
    Place("chat", mark("Screens", "Chat"), "message-square", "slipstream_app.screens.chat", "ChatScreen"),
    Place("models", mark("Screens", "Models"), "box", "slipstream_app.screens.models", "ModelsScreen"),
    Place("telemetry", mark("Screens", "Telemetry"), "activity", "slipstream_app.screens.telemetry", "TelemetryScreen"),
    Place("race", mark("Screens", "Race"), "flag", "slipstream_app.screens.race", "RaceScreen"),
    Place("server", mark("Screens", "Server & Agents"), "server", "slipstream_app.screens.server", "ServerScreen"),
)

# Has no row: it comes at the first start, and from the palette.
ONBOARDING = Place(
    "onboarding", mark("Screens", "Welcome"), "sparkles", "slipstream_app.screens.onboarding", "OnboardingScreen"
)
