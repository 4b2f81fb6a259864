"""Hidden states: from texts to arrays (003 section 3.1).  The only place of RepEval where torch is imported.

::

    ModelSpec ── describe ── ModelFacts       a model before its weights are read
    Extraction                                which text, which layers, which tokens
    extract(golden, spec, extraction, cache_dir, on_progress) ── States
    plan_states, compute, collect             the same in steps that a durable run can repeat
    Machines(spec, address)                   where they are computed: here, or on several GPUs or hosts
    templates, template_text                  prompts by name
    sentence_vectors(texts)                   one unit vector a text from the embedded encoder
"""

from core.repeval.states.extraction import StatePlan, collect, compute, lacks_other_text, plan_states, texts_to_read
from core.repeval.states.machines import Machines, extract
from core.repeval.states.model import EMBEDDED, ModelSpec, describe
from core.repeval.states.prompts import template_text, templates
from core.repeval.states.reader import SENTENCE_DIM, sentence_vectors
from core.repeval.states.records import Extraction, States, TextMode

__all__ = [
    "EMBEDDED",
    "SENTENCE_DIM",
    "Extraction",
    "Machines",
    "ModelSpec",
    "StatePlan",
    "States",
    "TextMode",
    "collect",
    "compute",
    "describe",
    "extract",
    "lacks_other_text",
    "plan_states",
    "sentence_vectors",
    "template_text",
    "templates",
    "texts_to_read",
]
