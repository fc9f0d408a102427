"""The operator's choices: settings.yaml, profiles over it, environment variables over both.

Read once by `wiring`; nothing else looks at the environment. Unknown keys are refused.
"""

from __future__ import annotations

from privategpt.settings.reading import DEFAULT_FOLDER, load_settings
from privategpt.settings.sections import (
    MODELS,
    AnswerSettings,
    AuthSettings,
    EmbeddingSettings,
    IngestionSettings,
    LimitSettings,
    LlmSettings,
    ModelSettings,
    RerankSettings,
    ServerSettings,
    Settings,
    TenantLimits,
    VectorSettings,
    WebSearchSettings,
)

__all__ = [
    "DEFAULT_FOLDER",
    "MODELS",
    "AnswerSettings",
    "AuthSettings",
    "EmbeddingSettings",
    "IngestionSettings",
    "LimitSettings",
    "LlmSettings",
    "ModelSettings",
    "RerankSettings",
    "ServerSettings",
    "Settings",
    "TenantLimits",
    "VectorSettings",
    "WebSearchSettings",
    "load_settings",
]
