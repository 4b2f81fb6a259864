"""The parts of the reader of ratings (`core.judging.parse`): where in a reply a value is stated, and how firmly.

::

    statements   a value, where it stands, and its rank               Statement
    wording      vocabularies and patterns, and what is made plain    Grammar grammar levelled
    numerals     matched text → number on the scale                   matched_value
    labelled     "score: 4", "<score>4</score>", a line of its own    from_labels standing_alone
    prose        "a score of 4", "4 von 5", "three stars"             from_prose
    chinese      评分：4, 4分, 四颗星                                  from_chinese
    fields       JSON, in a code fence too, nested                    from_json
    options      letters of multiple choice                           from_letters

All patterns are bounded, look back over bounded windows, and so read any text in time linear in its length.
"""
