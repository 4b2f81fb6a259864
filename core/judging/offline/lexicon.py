"""Word lists of our own for the text features: closed classes of English and a few cues."""

from __future__ import annotations

ARTICLES = frozenset({"a", "an", "the"})
THIRD_PERSON = frozenset(
    "he she it they him her them his hers its their theirs himself herself itself themselves".split()
)
FIRST_PERSON = frozenset("i me my mine myself we us our ours i'm i've i'd i'll we're we've we'll".split())
SECOND_PERSON = frozenset("you your yours yourself you're you've you'll you'd u".split())
DEMONSTRATIVES = frozenset("this that these those such there here".split())
PREPOSITIONS = frozenset(
    "of in to for on with at by from about as into like through after over between out against during without "
    "before under around among near within along across behind beyond off up down until upon per via since".split()
)
CONJUNCTIONS = frozenset("and or but nor so yet if because while although though whereas unless whether than".split())
AUXILIARIES = frozenset(
    "is are was were be been being am has have had having do does did doing will would shall should can could may "
    "might must isn't aren't wasn't weren't hasn't haven't hadn't don't doesn't didn't won't wouldn't can't couldn't "
    "shouldn't it's that's there's he's she's".split()
)
NEGATIONS = frozenset(
    "no not never none nobody nothing neither nor without cannot can't won't don't doesn't didn't isn't aren't wasn't "
    "weren't wouldn't couldn't shouldn't hasn't haven't hadn't n't t".split()
)
QUESTION_WORDS = frozenset("who what when where why how which whom whose".split())
FUNCTION_WORDS = (
    ARTICLES
    | THIRD_PERSON
    | FIRST_PERSON
    | SECOND_PERSON
    | DEMONSTRATIVES
    | PREPOSITIONS
    | CONJUNCTIONS
    | AUXILIARIES
    | NEGATIONS
    | QUESTION_WORDS
    | frozenset(
        "all any both each few more most other some only own same too very just also then now one every much many "
        "s ll ve re d m even still ever again once else about that".split()
    )
)
CONNECTIVES = frozenset(
    "but however because so therefore thus although though while meanwhile then later after before also moreover "
    "furthermore instead despite since as when until finally first second next additionally besides nevertheless "
    "still yet and consequently hence afterwards whereas".split()
)
OPENERS_THAT_LEAN_BACK = (THIRD_PERSON | frozenset("but and however also this that these those then so".split())) - {
    "it"
}
"""Words that, opening a text, point back at something never said."""

DANGLING_ENDS = (
    ARTICLES | PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | frozenset("his her its their our my your who which".split())
) - frozenset(
    "out up down off over around before after in on so too been it's near behind "
    "along across through within without beyond since".split()
)
"""Words that hardly ever end a finished sentence."""

OPINIONS = frozenset(
    "love loved like liked enjoy enjoyed great good awesome amazing cool nice wow interesting fun funny best favorite "
    "favourite fan beautiful crazy wild sad bad hate terrible incredible fascinating glad happy hope wish wonder think "
    "believe guess agree prefer surprised surprising haha lol yeah definitely absolutely".split()
)
GREETINGS = frozenset("hi hello hey bye goodbye thanks thank welcome chatting".split())
NON_COMMITTAL = (
    "i don't know",
    "i do not know",
    "not sure",
    "no idea",
    "i haven't",
    "i have not",
    "never heard",
    "i don't",
    "don't think",
)
JUNK_TOKENS = frozenset("unk lrb rrb lsb rsb lcb rcb nbsp amp quot s_ e_ eos bos pad sep cls".split())
PLACEHOLDER_VALUES = frozenset(
    {"", "none", "dont_care", "don't care", "dontcare", "yes", "no", "true", "false", "?", "null"}
)
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st rev gen col lt sgt capt gov sen rep pres vs etc inc ltd co corp dept no fig jan feb "
    "mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun ave blvd rd ark calif fla ga ill mass mich "
    "minn ore pa tenn tex va wash wis".split()
)
NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
}
