"""English words that carry no content of a claim. A change here changes TEXT_RULES in text.py."""

_LISTED = """
a an the this that these those such some any each every all both either neither other another
i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her
hers herself it its itself they them their theirs themselves one ones
who whom whose which what when where why how whether
be am is are was were been being do does did doing done have has had having
will would shall should can could may might must ought
and or but nor so if then else than as because while although though since until unless
of at by for from in into on onto to toward towards with within without about above below over
under between among through during before after up down out off against around per via upon along
across also too very just only even still again there here thus hence therefore however moreover
not no yes more most much many few less own same further once various several certain etc
overall additionally furthermore similarly specifically respectively finally lastly
's isn't aren't wasn't weren't don't doesn't didn't can't cannot couldn't won't wouldn't shouldn't
it's that's there's i'm you're they're we're he's she's i've you've they've we've i'd i'll you'll
"""

STOP_WORDS = frozenset(_LISTED.split())
