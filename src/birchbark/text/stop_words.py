"""Which words are ignored because they are too frequent to be informative?"""

from __future__ import annotations

# Lucene's English list: what the English analyzer leaves out.
LUCENE = frozenset(
    (
        "a an and are as at be but by for if in into is it no not of on or such that the their "
        "then there these they this to was will with"
    ).split()
)

# NLTK's English list: what the birch paper leaves out when it counts the words of a query.
NLTK = frozenset(
    (
        "i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself "
        "yourselves he him his himself she she's her hers herself it it's its itself they them "
        "their theirs themselves what which who whom this that that'll these those am is are was "
        "were be been being have has had having do does did doing a an the and but if or because "
        "as until while of at by for with about against between into through during before after "
        "above below to from up down in out on off over under again further then once here there "
        "when where why how all any both each few more most other some such no nor not only own "
        "same so than too very s t can will just don don't should should've now d ll m o re ve y "
        "ain aren aren't couldn couldn't didn didn't doesn doesn't hadn hadn't hasn hasn't haven "
        "haven't isn isn't ma mightn mightn't mustn mustn't needn needn't shan shan't shouldn "
        "shouldn't wasn wasn't weren weren't won won't wouldn wouldn't"
    ).split()
)

# The cord report, appendix A.3: what is left out of titles when pairs are made.
CORD = frozenset(
    (
        "a about after all also always am an and any are at be been being but by came can cant "
        "come could did didn't do does doesn't doing don't else for from get give goes going had "
        "happen has have having how i if ill i'm in into is isn't it its i've just keep let like "
        "made make many may me mean more most much no not now of only or our really say see some "
        "something take tell than that the their them then they thing this to try up us use used "
        "uses very want was way we what when where which who why will with without wont you your "
        "youre"
    ).split()
)
