"""The words by which people name a concept in criteria: comma-separated, lower case, "*" for any ending.

For each concept two lists: words for its high pole and words for its low pole.  A concept's own written phrases
(`Concept.high`, `Concept.low`) need not be repeated here; they are here in short so that an edited sentence is
still understood.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

WORDINGS: dict[str, tuple[str, str]] = {
    "faithful": (
        "faithful*, factual*, consistent with, consistency with, supported by, support by, grounded in "
        "the source, grounded in the article, grounded in the document, grounded in the text, accurate*, "
        "accuracy, true to, entail*, backed by, verif*, correct facts, only what the source says",
        "hallucinat*, unsupported, invent*, fabricat*, made up, made-up, unfaithful*, inaccura*, not in "
        "the source, not in the article, not in the document, not in the text, factual error*, factual "
        "mistake*, factually incorrect, factually wrong, false claim*, false statement*, contradict*, "
        "inconsistent with, inconsistency with, incorrect facts, wrong facts, source does not say",
    ),
    "names": (
        "right name*, correct name*, exact name*, right number*, correct number*, exact number*, correct "
        "date*, correct figure*, accurate name*, accurate number*, names and numbers, names and dates, "
        "entity, entities, figures and dates",
        "wrong name*, wrong number*, wrong date*, wrong figure*, wrong person, wrong people, wrong "
        "place*, swapped, misattribut*, mixed up, mixed-up, new names, bring in name*, "
        "brings in name*, invented name*, invented number*, "
        "unseen name*, unseen number*",
    ),
    "splices": (
        "keep together, intact",
        "join words, splic*, distort*, misrepresent*, twist*, recombin*, stitch*",
    ),
    "denial": (
        "what is denied",
        "deny, denies, affirm*, negation*, the opposite",
    ),
    "copying": (
        "close to the wording, extractive, verbatim, copy, copies, copied, copying, quotes the source, "
        "words of the source, source's words, source's wording",
        "in new words, paraphras*, abstractive, own words, rephras*, rewrit*, novel wording, original wording",
    ),
    "coverage": (
        "cover*, main point*, main idea*, main fact*, main event*, key point*, key idea*, key fact*, key "
        "detail*, key information, key event*, important*, salient, essential point*, essential "
        "information, central, informative*, comprehensive*, relevant, relevance, gist, preserv*, "
        "retain*",
        "leave out, leaves out, leaving out, omit*, omission*, miss, misses, missing, incomplete "
        "information, irrelevant, off-topic, off topic, trivial*, minor detail*",
    ),
    "lead": (
        "tells first, tell first, says first, comes first, the lead, beginning of the source, beginning "
        "of the article, opening of the source, opening of the article, headline*",
        "comes late, come late, end of the source, end of the article, later parts, buried",
    ),
    "order": (
        "the order, in order, chronolog*, sequence*, logical order, logical flow, logical progress*, "
        "well organi*, well-organi*, organised, organized, well structured, well-structured, structure*",
        "jump*, disorgani*, out of order, scattered, all over the place, shuffled",
    ),
    "focus": (
        "focus*, few connected points, single topic, single point, single event, to the point, stick*",
        "string together, unfocus*, ramble*, rambling, wander*, digress*, list of facts, heap*",
    ),
    "length": (
        "long, longer, length, fuller, detail, details, detailed, elaborate*, thorough*, lengthy, rich, substantial*",
        "short, shorter, brief*, concise*, concision, brevity, succinct*, terse*, compact*",
    ),
    "moderate": (
        "moderate length, moderate size, reasonable length, right length, appropriate length, suitable length",
        "too short, too long, far too, wordy, verbose, overlong, padding, padded",
    ),
    "sentence_length": (
        "long sentence*, longer sentence*, complex sentence*",
        "short sentence*, shorter sentence*, simple sentence*, clipped sentence*, choppy",
    ),
    "sentence_count": (
        "several sentences, many sentences, more sentences, multiple sentences",
        "few sentences, fewer sentences, one sentence, single sentence",
    ),
    "repetition": (
        "everything once, non-redundan*, nonredundan*, non-repetiti*",
        "repeat*, repetit*, redundan*, duplicat*, says the same, say the same, loop*",
    ),
    "variety": (
        "vary, varied, variety, diverse, diversity",
        "monoton*, same words, same openings, over and over",
    ),
    "finished": (
        "finished, finish every, finish each, finishes, proper ending",
        "break off, breaks off, breaking off, unfinished, truncat*, cut off, cut short, incomplete "
        "sentence*, fragment*, mid-sentence, abrupt end*, ends abruptly",
    ),
    "clean": (
        "clean*, well-formatted, well formatted, punctuat*, tidy",
        "stray, symbol*, garbl*, noise, artefact*, artifact*, formatting error*, formatting problem*, "
        "formatting issue*, typo*, gibberish",
    ),
    "capitals": (
        "capital*",
        "lower case, lower-case, lowercase, uncapitali*",
    ),
    "grammar": (
        "grammar*, grammatical*, fluent*, fluency, well-written, well written, syntax, natural, "
        "naturally, naturalness, idiomatic*, smooth*, proper english, native, understandable, clear, "
        "clearly, clarity, readable, readability",
        "slips, ungrammatical*, disfluen*, awkward*, unnatural*, clumsy, broken english, broken "
        "sentence*, broken language, unclear*, confus*, hard to read, hard to follow, hard "
        "to understand",
    ),
    "sentences": (
        "whole sentence*, well-formed*, well formed*, complete sentence*, full sentence*, fluent*, fluency",
        "bits that are no, no sentences, lack a verb, lacks a verb, without a verb, verbless, note form",
    ),
    "linked": (
        "tie each, coheren*, cohesi*, connected, connection*, flow, flows, hang together, thread, hold "
        "together, holds together, linked, build on each other",
        "line up sentences, disjoint*, disconnect*, incoheren*, unrelated sentences, nothing to do with, "
        "bits and pieces",
    ),
    "connectives": (
        "linking word*, connective*, conjunction*, transition*, pronoun*",
        "without linking, abrupt transition*",
    ),
    "stands_alone": (
        "stands alone, stand alone, on its own, on their own, self-contained, self contained, understood by itself",
        "pointing back, dangling, unresolved, unclear reference*, out of context, unexplained pronoun*",
    ),
    "readability": (
        "simple, simpler, simplicity, simply, plain*, easy, easier, easily, common words, accessible, everyday",
        "long words, demanding, difficult*, complex, complexity, technical, jargon, advanced, sophisticat*",
    ),
    "specific": (
        "concrete*, specific*, precise*, precision",
        "stay general, generic*, vague*, abstract, bland*",
    ),
    "impersonal": (
        "impersonal*, third person, neutral tone, objective*, without i, neutral*",
        "speak of i, first person, second person, personal, addresses the reader, subjective*",
    ),
    "questions": (
        "ask, asks, asking, asks a question, questions, question back, invite*, curio*",
        "no question*",
    ),
    "feeling": (
        "feeling*, opinion*, enthusias*, emotion*, lively, warm*, friendly, personality",
        "neither feeling nor, dull, flat, dry, lifeless, boring",
    ),
    "committed": (
        "definite*, committed, meaningful*",
        "evad*, evasive*, non-committal, noncommittal, do not know, don't know, dodge*, empty repl*, "
        "platitude*, filler*",
    ),
    "responsive": (
        "take up, takes up, respond*, responsive*, answer the*, answers the*, answering, "
        "answer what, answers what, said just before, said before, previous turn*, last turn*, "
        "last message, context, maintain*, "
        "follow on, follows on, follows from, "
        "coheren*, relevant",
        "pass over, passes over, ignores the, ignores what, non sequitur*, changes the subject, change the subject",
    ),
    "uses_fact": (
        "given fact*, knowledge*, use the fact*, uses the fact*, use of the fact*, grounded, "
        "groundedness, grounding, background, persona, informative*, interesting fact*, engaging, "
        "engagingness, interesting",
        "no use of, without facts, without using, uninformative, uninteresting",
    ),
    "on_topic": (
        "keep to the, keeps to the, on topic, on-topic, pertinent",
        "unrelated to, unrelated, random, off topic, off-topic, irrelevant",
    ),
    "fresh": (
        "something new, new information, fresh*, moves the conversation, move the conversation, "
        "contribut*, engaging, interesting",
        "say again, says again, parrot*, echo*, rehash*",
    ),
    "slots_told": (
        "every piece, every slot, every field, every fact, every value, all the slots, all slots, all "
        "the fields, all fields, all the facts, all facts, all the data, all the information, all "
        "information, all values, slot*, informative*, semantic*, adequa*, cover*, complete*",
        "leave out, leaves out, leaving out, omit*, omission*, missing, miss, misses",
    ),
    "slots_extra": (
        "add nothing, adds nothing, faithful*, nothing extra, accura*, only the data",
        "add what, adds what, hallucinat*, invent*, made up, made-up, extra information, extra fact*, "
        "extra word*, unsupported, superfluous",
    ),
    "slots_once": (
        "data once",
        "data twice, twice, repeat*, repetit*, redundan*, duplicat*",
    ),
    "slot_order": (
        "order of the data, data order",
        "rearrang*, reorder*, aggregat*",
    ),
    "spelt_out": (
        "spell*, explicit*, worded in full, elaborat*",
        "tersely, implicit*, telegraph*",
    ),
}


class Poles(NamedTuple):
    """Compiled expressions that find the words for the two poles of a concept."""

    high: re.Pattern[str]
    low: re.Pattern[str]


@lru_cache(maxsize=1)
def poles() -> dict[str, Poles]:
    """One pair of expressions a concept, in the order of `WORDINGS`."""
    return {key: Poles(expression(high), expression(low)) for key, (high, low) in WORDINGS.items()}


def expression(words: str) -> re.Pattern[str]:
    """An expression for any of some comma-separated words, whole words only, "*" for any ending; longest first."""
    parts = sorted((part.strip() for part in words.split(",")), key=len, reverse=True)
    body = "|".join(re.escape(p.rstrip("*")).replace("\\ ", r"\s") + (r"\w*" if p.endswith("*") else "") for p in parts)
    return re.compile(rf"(?<![\w-])(?:{body})(?!\w)")
