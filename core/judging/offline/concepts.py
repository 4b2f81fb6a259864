"""Named concepts: groups of features with a direction, and words for both poles.

A concept's value is positive at its *high* pole.  One-way concepts have a good pole that nobody doubts (say only what
the source says); two-way ones are matters of taste (long or short) that the labels must decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.judging.offline.features import INDEX


@dataclass(frozen=True, slots=True)
class Concept:
    """`features` are names with a sign ("-" lowers the value).  `high` and `low` complete "texts that …".

    The words by which people name it are in `wordings`.  A defect is worded by its
    low pole ("penalise texts that repeat themselves").
    """

    key: str
    features: tuple[str, ...]
    high: str
    low: str
    one_way: bool = False
    defect: bool = False


def _taste(key: str, features: str, high: str, low: str) -> Concept:
    return Concept(key, _known(features), high, low)


def _good(key: str, features: str, high: str, low: str) -> Concept:
    return Concept(key, _known(features), high, low, one_way=True)


def _defect(key: str, features: str, high: str, low: str) -> Concept:
    return Concept(key, _known(features), high, low, one_way=True, defect=True)


def _known(features: str) -> tuple[str, ...]:
    signed = tuple(features.split())
    unknown = [name for name in signed if name.lstrip("-") not in INDEX]
    if unknown:
        raise ValueError(f"Unknown features {unknown}.")
    return signed


CONCEPTS: tuple[Concept, ...] = (
    _good(
        "faithful",
        "known_words sentence_support weakest_support pair_support -log_unseen_words",
        "say only what the source says",
        "state things that the source does not say",
    ),
    _defect(
        "names",
        "-log_unseen_names -log_unseen_numbers -misplaced",
        "give names and numbers as the source gives them",
        "bring in names or numbers that the source does not give",
    ),
    _defect(
        "splices",
        "-splices -log_splices",
        "keep together what belongs together in the source",
        "join words of the source into statements it does not make",
    ),
    _defect(
        "denial",
        "-negation_mismatch",
        "agree with the source on what is denied",
        "deny what the source affirms, or affirm what it denies",
    ),
    _taste(
        "copying",
        "log_density log_longest_copy longest_copy_share -new_pairs -new_triples",
        "stay close to the wording of the source",
        "retell the source in new words",
    ),
    _good(
        "coverage",
        "salient_recall weighted_recall top_words -divergence",
        "cover the main points of the source",
        "leave out the main points of the source",
    ),
    _taste(
        "lead",
        "lead_share first_sentence_recall -place -last_place",
        "tell what the source tells first",
        "draw on what comes late in the source",
    ),
    _good(
        "order",
        "source_order -jumps -jump_between_sentences",
        "follow the order of the source",
        "jump about in the source",
    ),
    _good(
        "focus",
        "-source_sentences_used salience",
        "keep to a few connected points",
        "string together points from all over the source",
    ),
    _taste(
        "length",
        "log_words log_content_words",
        "are long and full",
        "are short",
    ),
    _good(
        "moderate",
        "-words_outside_30_90",
        "have a moderate length",
        "are far too short or far too long",
    ),
    _taste(
        "sentence_length",
        "log_sentence_words log_longest_sentence",
        "use long sentences",
        "use short sentences",
    ),
    _taste(
        "sentence_count",
        "log_sentences",
        "have several sentences",
        "have few sentences",
    ),
    _defect(
        "repetition",
        "-repeated_words -repeated_pairs -repeated_triples -doubled_words -most_similar_sentences",
        "say everything once",
        "repeat themselves",
    ),
    _good(
        "variety",
        "-most_used_word -same_starts",
        "vary their words and openings",
        "use the same words and openings over and over",
    ),
    _defect(
        "finished",
        "-unfinished -dangling_end -cut_word_end -dangling_sentences",
        "finish every sentence",
        "break off in mid-sentence",
    ),
    _defect(
        "clean",
        "-stray_punctuation -junk -unbalanced -starts_with_punctuation",
        "are free of stray symbols and punctuation",
        "hold stray symbols or punctuation",
    ),
    _defect(
        "capitals",
        "-lower_case_starts",
        "begin sentences with a capital letter",
        "begin sentences in lower case",
    ),
    _good(
        "grammar",
        "-grammar_slips -doubled_words",
        "are written in correct grammar",
        "make slips of grammar",
    ),
    _good(
        "sentences",
        "-verbless_sentences -function_words_odd -short_sentences",
        "are built of whole, well-formed sentences",
        "hold bits that are no sentences",
    ),
    _good(
        "linked",
        "neighbour_overlap linked_sentences back_to_first thread",
        "tie each sentence to the others",
        "line up sentences that have nothing to do with each other",
    ),
    _taste(
        "connectives",
        "connectives connective_starts pronoun_links",
        "use linking words and pronouns",
        "do without linking words and pronouns",
    ),
    _defect(
        "stands_alone",
        "-leans_back",
        "open in a way that stands alone",
        "open by pointing back at something never said",
    ),
    _taste(
        "readability",
        "readability -word_length -long_words",
        "use short, common words",
        "use long and demanding words",
    ),
    _taste(
        "specific",
        "number_share name_share content_share",
        "are concrete, with names and numbers",
        "stay general",
    ),
    _taste(
        "impersonal",
        "-first_person -second_person",
        "report without I, we or you",
        "speak of I, we or you",
    ),
    _taste(
        "questions",
        "asks answers_with_question",
        "ask a question",
        "ask no question",
    ),
    _taste(
        "feeling",
        "opinions exclaims",
        "show feeling or an opinion",
        "show neither feeling nor opinion",
    ),
    _defect(
        "committed",
        "-non_committal -greetings",
        "say something definite",
        "evade or say only that they do not know",
    ),
    _good(
        "responsive",
        "last_turn_overlap log_last_turn_words history_overlap",
        "take up what was said just before",
        "pass over what was said just before",
    ),
    _good(
        "uses_fact",
        "fact_precision log_fact_words log_fresh_fact_words log_fact_copy fact_salience",
        "make use of the given facts",
        "make no use of the given facts",
    ),
    _good(
        "on_topic",
        "-unrelated_words",
        "keep to the conversation and the given facts",
        "bring in things unrelated to the conversation",
    ),
    _good(
        "fresh",
        "-log_said_before log_new_words",
        "add something new to the conversation",
        "say again what was said before",
    ),
    _good(
        "slots_told",
        "slots_told -log_slots_missing slots_exact",
        "voice every piece of the data",
        "leave out pieces of the data",
    ),
    _good(
        "slots_extra",
        "-log_extra_words -extra_share",
        "add nothing to the data",
        "add what the data does not hold",
    ),
    _defect(
        "slots_once",
        "-slots_repeated",
        "tell each piece of the data once",
        "tell a piece of the data twice",
    ),
    _taste(
        "slot_order",
        "slots_in_order",
        "keep the order of the data",
        "rearrange the data",
    ),
    _taste(
        "spelt_out",
        "words_per_slot slot_names_voiced",
        "spell each piece of the data out",
        "put the data tersely",
    ),
)
KEYS: tuple[str, ...] = tuple(concept.key for concept in CONCEPTS)
POSITION: dict[str, int] = {key: i for i, key in enumerate(KEYS)}
