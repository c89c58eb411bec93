"""What a program that answers reviews needs of the application: its claim on the answer."""

from __future__ import annotations

from graphs.common.answers import claims_in
from graphs.common.effects import application_database

claim_answer = claims_in("RESEARCH_DATABASE_URL", application_database)
