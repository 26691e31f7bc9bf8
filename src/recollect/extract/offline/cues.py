"""What in a user's sentence speaks for keeping it, and what against: named patterns, and a weight for most names.

The weights were fitted on made-up conversations (`bench/data`) and rounded, with floors set by hand where there was
little data; a sentence is kept when they add up to more than nothing. A pattern without a weight tells kinds apart, or
makes a sentence a rule. English, but for the plainest words of rules in some other languages.
"""

from __future__ import annotations

import math
import re
from functools import cache

from recollect.extract.offline import abroad
from recollect.extract.offline.units import Unit
from recollect.text import COMMON, pairs, words

_DO = (  # verbs that ask for something to be done once
    r"(?:fix|rename|show|run|rerun|add|make|look|check|open|revert|apply|continue|go|try|move|put|delete|remove|"
    r"write|explain|tell|give|list|read|find|update|change|create|draft|summari[sz]e|translate|shorten|set|replace|"
    r"implement|commit|push|start|stop|print|explore|describe|review|sort|build|deploy|install|generate|help|"
    r"refactor|undo|send|merge|rebase|format|restart|turn|bump|clean|search|compare|convert|test|investigate|"
    r"correct|submit|plot|leave|suggest|rewrite|fetch|load|save|copy|paste|edit|extract|drop|throw|take|pick|wait|"
    r"do|see|kindly|proceed|begin|plan|design|prepare|schedule|export|import|upgrade|port|migrate|draw|outline|estimate|"
    r"calculate|parse|wire|book|research|document)"
)

_DID = (
    r"(?:began|bought|broke|built|came|did|felt|found|gave|got|had|heard|knew|left|lost|made|met|ran|said|saw|sent|"
    r"thought|told|took|tried|went|wrote|put|forgot)"
)
_ED = r"(?!(?:need|feed|heed|seed|speed|exceed|proceed|succeed|embed|shed|shred)\b)\w+ed\b"
_ACTED = (  # what is decided is no report
    rf"(?!(?:decided|agreed|settled|switched|migrated|moved|standardi[sz]ed|used|supposed|based)\b){_ED}"
)
_TODO = r"\b(?-i:TODO|ToDo)\b|\bto-do\b|\btodo:|\b(?:a|the|my|our|your|as|is|add) todos?\b"  # "perdí todo" is none
LABEL = (  # what somebody calls a statement, before it
    r"(?:(?:new|one|general|house|the|my|our) )*(?:rule|lesson|note|decision|reminder|convention)(?: (?:learn(?:ed|t)|"
    r"of thumb|for (?:the future|next time|later|this (?:repo|project))|here))*: +"
)
_BEGINS = (
    r"^(?:(?:ok(?:ay)?|so|and|also|but|well|oh|hello|hi|hey|good|great|yes|yep|no|nope|hm+|btw|by the way|actually|"
    r"thanks|thank you|fyi)[,.!]* )*"
)
_PASSES = (  # "I …": what one thinks, wants or does just then
    r"need|want|wanna|think|see|get|got|know|guess|believe|feel|hope|wonder|mean|understand|understood|remember|forget|"
    r"can|can'?t|cannot|could|couldn't|will|won't|would|wouldn't|should|shouldn't|may|might|must|shall|do|didn'?t|am|are|"
    r"aren't|was|were|had|have (?:to|been|no|this|that|these|problems?|\w+ unread|an? (?:meeting|call|deadline|"
    r"question|problem|feeling|hunch|idea|doubt|look|sec|minute|headache|mind))|haven't|just|still|already|now|look|try|"
    r"notice|agree|appreciate|ask|suggest|love|like|give|send|go|come|leave|start|finish|check|wait|say|assume|promise|"
    r"doubt|trust|mind|care|count|end|stop|really|nearly|hear|imagine|wish|swear|note|gotta|gonna|kinda|keep \w+ing|"
    r"hardly|barely|almost"
)
_MOODS = (  # "I am …"
    r"tired|hungry|thirsty|late|early|busy|stuck|back|done|ready|sure|sorry|afraid|glad|happy|sad|fine|good|ok|okay|well|"
    r"lost|confused|curious|worried|bored|sick|ill|exhausted|out|off|here|there|home|away|free|next|nearly|almost|about|"
    r"just|still|now|not|so|very|too|really|pretty|a bit|a little|in|at|on|with|over|under|behind|ahead|near|unable|"
    r"able|aware|offline|online|up|down|close|proud|angry|excited|nervous|stressed|to"
)
PATTERNS: tuple[tuple[str, str], ...] = (
    # said in so many words
    ("explicit", r"^(?:and |also |so |but )*(?:before|after|for) (?:every|each|any)\b|"
     r",? never [\w`'\"“”./@-]+\s*[.!]?$|\bmust (?:be|have|run|use|stay|go|work|support|fit)\b|\binstead[.!]?$|"
     r"^(?:and |also |so |but |please |kindly |no,? |ok,? )*(?:always|never|avoid|prefer|don'?t ever|stick "
     r"(?:to|with))\b|\b(?:always|never|please don'?t) (?:use|run|do|write|put|commit|push|add|make|ask|start|call|"
     r"edit|touch|change|deploy|merge|suggest|send|give|show|keep|include|mention|create|delete|remove|assume|skip|"
     r"forget|work|go|eat|book|buy|drive|fly|wear|take)\b|\b(?:from now on|going forward|in (?:the )?future|"
     r"by default|as a rule|every time|in all (?:of )?(?:my|our)|everywhere)\b|"
     r"\b(?:remember (?:that|this|to)|keep in mind|don'?t forget|"
     r"for next time|make a note|note for)\b|\b(?:i|we) (?:strongly |really |always |generally |usually |much |"
     r"would )?(?:prefer|hate|love it when|want you to|don'?t want|don'?t do|don'?t use|never|only use|only do|"
     r"insist)\b|\bi'?d rather\b|\bcan'?t stand\b|\bdrives? me\b|\buse [\w`'\"“”./@ -]{2,40}(?:,? not |,? never |"
     r",? instead of |,? rather than )|, not [\w`'\"“”./@-]+\s*[.!]?$|\b(?:is|are|be) (?:strictly )?(?:not allowed|"
     r"not permitted|forbidden|mandatory|required|off limits|out of bounds|non-?negotiable)\b|\b(?:must|"
     r"may) (?:never|not|always|only)\b|\bshall (?:not|never|always|only)\b|^(?:please )?no (?!worries|problem|idea|"
     r"thanks|need|rush)(?:more |new )?[\w-]+(?: [\w-]+){0,4}(?:[.,!]|$| please\b)|"
     rf"\b(?:rule|convention|policy) (?:is|here|of)\b|^{LABEL}"),
    ("abroad", abroad.RULES),
    ("decided", r"\b(?:we|i)(?:'ve| have)? (?:just |finally |now |already )?(?:decided|agreed|settled|chose|switched|"
     r"migrated|moved|standardi[sz]ed)\b|"
     r"\bwe(?:'re| are)? (?:now )?(?:stay(?:ing)?|stick(?:ing)?|go(?:ing)?) (?:with|on)\b|"
     r"\bwe(?:'re| are)? (?:go(?:ing)?|switch(?:ing)?|mov(?:e|ing)|migrat(?:e|ing)) (?:back )?to\b.*\bafter all\b|"
     r"\blet'?s (?:go with|use|stick (?:to|with)|keep|call it|settle)\b|"
     r"\bwe(?:'ll| will| are going to) (?:use|go with|stick|keep)\b"),
    ("forbids", r"^(?:and |also |so |but |please |no,? |ok,? )*(?:don'?t|do not|dont|stop|avoid) (?:ever )?(?:us(?:e|"
     r"ing)|add|writ|put|commit|push|touch|edit|creat|mention|suggest|includ|call|run|deploy|merg|ask|assum|guess|"
     r"mock|import|install|generat|refactor|reformat)"),
    ("self", r"\b(?:my name is|call me|i live in|i'?m (?:a|an|based|from|allergic|vegetarian|vegan|diabetic|"
     r"colou?r-?blind|left-handed)\b|i am (?:a|an|based|from|allergic|vegetarian|vegan|diabetic)\b|i (?:work|"
     r"worked) (?:at|as|for|in)|years? old|years of age|my (?:wife|husband|partner|son|daughter|kids?|children|"
     r"team|company|boss|birthday|time ?zone|editor|shell|laptop|machine|phone|email|e-mail|employer|job|dog|"
     r"cat) (?:is|are|has|have|runs|was)|i'?m in (?-i:[A-Z])[a-z]+|\bis (?:allergic|vegetarian|vegan|diabetic|"
     r"colou?r-?blind|left-handed))|" + abroad.SELF),
    ("where", r"\b(?:lives?|runs?|sits?|listens?|(?:is|are) (?:the one )?(?:at|in|on|under|called|named|hosted|"
     r"deployed|stored|located|kept|owned)) (?:in |at |on |under |by |with )?(?:the |a |our |port )*(?:`[^`]+`|"
     r"[\w-]+[./_:@-][\w./_:@-]+|\d{2,}|(?-i:[A-Z])\w+)|" + abroad.WHERE),
    ("todo", rf"{_TODO}|\bfixme\b|\bwe still (?:have|need) to\b|\bremind me\b"),
    ("habit", r"\bwe (?:all |always |usually |only |still )?(?:use|deploy|run|write|follow|ship|release|work|sign|"
     r"store|host|keep|pin|target|support|review|tag|squash|merge|test|log|track|report|do|go|eat|pay|meet|speak|"
     r"train|sell|teach|grow)\b|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)days\b"),
    # rules and preferences
    ("always", r"\b(?:always|never|ever|every time|at all times|under no circumstances|no exceptions?)\b|"
     rf"{abroad.ALWAYS}|{abroad.NEVER}"),
    ("from-now-on", r"\b(?:from now on|going forward|in (?:the )?future|whenever|each time|by default|as (?:usual|"
     r"a rule)|the (?:one )?rule|convention|policy|house style|standard|principle)\b"),
    ("remember", r"\b(?:remember|keep in mind|note that|make a note|note for|don'?t forget|for (?:the|your) (?:record|"
     r"reference|information)|fyi|before i forget|remind)\b"),
    ("must", r"\b(?:must|shall|has to|have to|required?|mandatory|allowed|permitted|forbidden|"
     r"not exceed|at (?:the )?most|at least|no more than|max(?:imum)?|min(?:imum)?|limit|ceiling|budget|deadline|"
     r"due)\b|\b(?:all|every|each) [\w-]+ (?:also )?needs?\b"),
    ("need", r"\b(?:we|i|you|it) (?:also |still |just )?needs? (?:to|a|an|the|some)\b"),
    ("should", r"\b(?:should|supposed to|ought to|better to|best to)\b"),
    ("prefer", r"\b(?:prefer|i like|i(?:'d| would) (?:like|rather)|i want|we want|i hate|can'?t stand|"
     r"i don'?t (?:like|want)|drives? me|annoy\w*|favou?rite|rather than)\b"),
    ("dont", r"\b(?:don'?t|do not|dont|doesn'?t|we never|not ever|avoid|stop (?:using|doing|adding)|no longer|"
     r"instead of|without (?:asking|my)|nobody|no one|nothing|nowhere|neither|anymore)\b|"
     + abroad.INSTEAD),
    ("no-thing", r"(?:^|[,;:] *|\band |\bplease )no (?!worries|problem|idea|thanks|need|rush)[a-z]"),
    ("only", r"\bonly\b"),
    ("x-not-y", r"\bnot (?:the |a |an |in |on |with |by |via )?[\w`'./@-]+\s*(?:$|[.;,])|, not \b|" + abroad.NOT_THAT),
    ("use", r"\b(?:we|i|they|team|project|everything|everyone) (?:all )?(?:use|uses|run|runs|do|write|keep|sign|store|"
     r"deploy|work|pin|target|support|ship|publish|report|track|log|name|call)\b"),
    ("keep-x", r"^(?:and |also |please |kindly |so |but )*(?:keep|stick (?:to|with)|use|prefer|avoid|write|put|ask|"
     r"treat|name|call|prefix) "),
    ("goes", r"\b(?:goes|go(?= (?:in|into|under|through|to|on the)\b)|live[sd]?|lies|belongs?|stays?|comes?|sits?|"
     r"resides?|is (?:called|named|stored|kept|located|"
     r"owned|pinned|reserved|written|used|for|at|in|on|under)) (?:in|into|under|through|to|at|on|with|after|before|"
     r"by)?\b"),
    # facts
    ("we", r"\bwe\b"),
    ("person", r"\b(?:owns?|owned|responsible|in charge|maintains?|handles?|takes care|husband|wife|partner|son|"
     r"daughter|boss|supervisor|colleague|client|customers?|team|editor|publisher|landlord|doctor|ask (?:her|him|"
     r"them))\b"),
    ("named", r"(?<![.!?\n] )(?<!^)\b(?-i:[A-Z][a-z]+)\b"),
    ("number", r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|forty|fifty|sixty|seventy|"
     r"eighty|ninety|hundred|thousand|half|dozen)\b"),
    ("unit", r"\d\s?(?:kb|mb|gb|tb|ms|s|sec(?:onds?)?|min(?:utes?)?|hours?|days?|weeks?|months?|years?|mg|ml|percent|%|"
     r"euros?|€|\$|usd|eur|km|m|cm|mm|kg|g|grams?|degrees?|fps|hz|khz|mhz|words?|pages?|people|users?|am|pm)\b|"
     r"[€$£]\s?\d"),
    ("date", r"\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|june|july|aug(?:ust)?|sept(?:ember)?|oct(?:ober)?|"
     r"nov(?:ember)?|dec(?:ember)?|mon(?:days?)?|tues?(?:days?)?|wed(?:nesdays?)?|thu(?:rsdays?)?|"
     r"fri(?:days?)?|sat(?:urdays?)?|sun(?:days?)?|spring|summer|autumn|winter|20\d\d)\b"),
    ("code", r"`[^`]+`|\b[\w-]+(?:/[\w.-]+)+|\b\w+\.(?:py|ts|tsx|js|json|ya?ml|toml|md|go|rs|java|kt|c|h|cpp|css|sql|"
     r"sh|txt|tf|gd|ipynb)\b|--[a-z][\w-]+|\b\w+_\w+\b|\b(?-i:[a-z]+[A-Z]\w+)"),
    ("is-x", r"\b(?:is|are|was|were|has|have|had|it's|that's|there's|takes?|needs?|costs?|means?|works?|"
     r"gets?)\b"),
    ("because", r"\b(?:because|since|so that|otherwise|that'?s why|as (?:we|the|it|they)|due to|reason|hence|thus|"
     r"therefore)\b"),
    ("pinned", r"\b(?:pinned|locked|stuck|frozen|freeze|legacy|deprecated|until|unless|except|contract|legal|"
     r"licen[cs]e|compliance|audit|allergic|vegetarian|vegan|medication|warranty|certif\w+)\b"),
    # lessons
    ("lesson", r"\b(?:did the trick|what (?:helped|worked|fixed)|turns? out|turned out|the (?:problem|issue|cause|"
     r"culprit|trick|fix|reason) (?:was|is)|root cause|didn'?t (?:work|help)|no use|fixed (?:it|that|by)|solved|"
     r"learn(?:ed|t)|went wrong|broke|breaks|wrecks?|fails? (?:when|if|because)|chokes?|leak\w*|desyncs?|corrupts?|"
     r"crash(?:es|ed)? (?:when|if|because)|incident)\b"),
    # procedures
    ("procedure", r"\b(?:first\b.*\bthen|then run|then\b.*\bthen|in that order|before (?:you|each|every|any)|"
     r"after (?:each|every|you)|steps?|sequence|to (?:run|build|deploy|test|release|rebuild|start|"
     r"publish)\b[^.]*\b(?:run|use|it's|you|do|:))"),
    # open ends
    ("open", r"\b(?:still (?:has|have|need|open|missing|to do|not|outstanding|owe|waiting)|later|next (?:week|"
     r"sprint|time|month|session|year)|another day|not today|tomorrow|remain\w*|outstanding|pending|waiting (?:for|"
     r"on)|left to|aren'?t done|isn'?t done|not done|unfinished|follow[- ]?up|come back to|for another|some ?day|"
     rf"eventually|unresolved)\b|{_TODO}"),
    # decisions
    ("decision", r"\b(?:let'?s (?:go|use|do|keep|take|stick|make|say|call)|go(?:ing)? with|we(?:'ll| will) (?:go|use|"
     r"do|keep|take|stick|make)|decided|decision|settled|agreed|final|definitely|i(?:'ll| will) (?:go|take|use|"
     r"keep)|it'?s (?:going to be|settled)|switch(?:ed|ing)? to|mov(?:ed|ing) to|"
     r"we (?:stay|stick) with|after all(?=[.,!]|$))\b|" + abroad.DECIDED),
    # against
    ("question", r"\?\s*[\"')”]*$|^(?:what|why|how|who|which|(?:when|where) (?:is|are|was|do|does|did|will|would|can|"
     r"could|should)|can you|could you|would you|will you|do you|"
     r"does|did you|is (?:it|there|that|this)|are (?:you|there)|should i|should we|any (?:idea|thoughts|chance))\b"),
    ("imperative", rf"^(?:(?:ok(?:ay)?|so|now|and|then|also|please|pls|just|next|great|good|perfect|well|right|yes|"
     rf"no(?=[,.!:])|hey|hi|cool|thanks|alright|first|finally|can you|could you|go ahead and|i want you to|"
     rf"i need you to|let'?s|i'd like you to)[,.!:]? )*{_DO}\b(?!-)|" + abroad.ORDERS),
    ("please", r"\b(?:please|pls|kindly|can you|could you|would you)\b"),
    ("thanks", r"\b(?:thanks?|thank you|thx|cheers|great|perfect|nice|awesome|lovely|brilliant|excellent|amazing|"
     r"good (?:job|morning|night|call|day|evening)|well done|hello|hi|hey|bye|welcome|wow|cool|sweet|yay|congrats|"
     r"wizard|love it|morning|evening|good one|fair enough|makes sense)\b"),
    ("joke", r"\b(?:lol|haha+|lmao|rofl|jk|kidding|joke|imagine|snows|dream(?:t|ed)?|funny|ha)\b|[:;]-?[)DP]|😂|🤣|"
     r"!!"),
    ("now", r"\b(?:now(?![.!]?$)|right now|today|just|at the moment|currently|this time|for now|quick(?:ly)?|"
     r"while you(?:'re| are)|again|yet|already|meanwhile|this morning|tonight|yesterday|a moment|a minute|a second|"
     r"temporar\w+)\b|" + abroad.PASSING),
    ("hypothetical", r"\b(?:maybe|perhaps|might|what if|would be|would have|wonder(?:ing)?|i think|i guess|could be|"
     r"suppose|probably|thinking (?:aloud|of|about)|if i were|hypothetically|not sure|i believe|seems?|looks? like|"
     r"smells?)\b"),
    ("deictic", r"\b(?:this|that|these|those|it) (?:line|file|one|function|test|error|bug|page|paragraph|sentence|"
     r"message|thing|screen|button|part)\b|\bline \d+|\b(?:above|below)\b"),
    ("dont-it", r"^(?:(?:no|and|but|please|pls|ok)[,.!]* )*(?:don'?t|do not|dont) \w+ (?:it|that|this|them)\b"),
    ("past", r"\b(?:was(?! (?:mit|ich|du|wir|er|sie|das|die|der|man|ist)\b)|were|did|had|went|got|saw|wrote|said|tried|"
     r"found|watched|slept|noticed|came|ran|made)\b"),
    ("others", r"\b(?!i |we |you |it |that |this )[a-z]+ (?:says|said|thinks|told|wrote|suggest(?:s|ed)|"
     r"recommend(?:s|ed)|claim(?:s|ed)|reckons|believes|blames|insists|swears|mentioned|asked (?:if|whether|"
     r"me))\b|\b(?:they|people|folks|guys|others|some) (?:say|think|reckon|believe|insist|swear)\b|\baccording to\b|"
     r"\b(?:friend|mother|father|brother|sister|uncle|aunt|neighbou?r|guy|reviewer|forum|"
     r"blog|article)\b.*\b(?:would|should)\b|\bsays? (?:that )?we should\b|\btold me\b|“…”"),
    ("wants", r"\b(?:i|we|i'd|we'd) (?:also |really |just )?(?:want|wanna|need)\b(?! you)|"
     r"\b(?:i|we)(?:'d| would) (?:also |really |just )?like\b(?! you)|\bi like (?:it|that|this|the)\b"),
    ("speaks", r"^(?:(?:and|but|so|also|ok|yes|no|well)[,.]? )*(?:i|i'm|im|i'd|i'll|i've|ive|ill)\b"),
    ("points", r"^(?:(?:and|but|so|also)[,.]? )*(?:this|that|it|these|those|it's|its|that's|thats|there|here)\b"),
    ("denies", r"^(?:no(?=[,.;:!]|$)|nope|nah)\b"),
    ("if", r"^(?:(?:and|but|so)[,.]? )*if\b"),
    ("step", r"^(?:first|then|next|now|after that|finally|and then)\b"),
    ("looks", r"\b(?:looks?|feels?|seems?|sounds?)\b"),
    ("trails", r"\.\.\.|…"),
    ("you", r"\b(?:you|your)\b"),
    ("picture", r"[\w)]\.(?:png|jpe?g|gif|webp|heic|mov|mp4)\b"),
    ("ack", r"^(?:ok(?:ay)?|yes|yep|yeah|yup|no|nope|nah|sure|right|good|great|fine|perfect|exactly|agreed|true|hm+|"
     r"mm+|ah+|oh+|ooh+|ugh|ha)(?:[.,!;:]|\s*$)"),
    # reports of the work at hand
    ("symptom", r"\b(?:fail(?:s|ed|ing)|hangs?|hung|crash(?:es|ed|ing)|throws?|errors?|typos?|exception|traceback|"
     r"conflicts?|(?:is|are|was|were|still|comes? (?:back|out)) (?:still |now |all |completely )?(?:missing|empty|"
     r"wrong|broken|blank|red|stuck|gone|cut off|off by)|(?:doesn'?t|don'?t|does not|won'?t|isn'?t|not|"
     r"didn'?t) (?:work|show|load|open|compile|build|start|render|appear|update|align)\w*)\b|"
     r"\b(?:says|shows?|returns?|prints?|gets?|gives?|got) (?:me |us )?(?:an? |the )?"
     r"(?:\d{3}|error|message|nothing|null|none|undefined|blank|same)\b|" + abroad.SYMPTOM),
    ("did", rf"\b(?:i|we|he|she|they)(?:'ve| have| had)? (?:just |already |also |only |now )?(?:{_DID}|{_ACTED})\b"),
    ("you-did", rf"\byou(?:'ve| have)? (?:just |already |also |only |still )?(?:{_DID}|{_ACTED}|moved)\b|"
     r"\byour (?:pr|change|fix|patch|commit|version|answer|last)\b"),
    ("which-one", r"\b(?:the|in|on) (?:first|second|third|fourth|last|next|other|new|old|wrong|same|top|bottom|left|"
     r"right) \w+"),
    ("when-i", r"\b(?:when|if|after|since|every time|whenever) i \w+"),
    ("under-way", r"\b(?:has|have) been \w+ing\b|\b(?:we are|i am|we're|i'm) (?:now|at the|still)\b|"
     r"\b(?:so far|by now|until now|since (?:lunch|this morning|yesterday|the update))\b"),
    ("tail-ask", r"\w[,;]? (?:and |so |then |but )?(?:can|could|would) you\b|\bgoing on\b|\bany idea\b|"
     r", (?:fix|check|look|see|tell|find)\b"),
    ("lately", r"\b(?:this (?:morning|afternoon|evening|week|time)|last (?:hour|night|week|run|time)|an hour|"
     r"minutes? ago|yesterday|just now|lunch|tonight)\b"),
    # of everything, and in so many signs
    ("universal", r"\b(?:everything|anything|every|throughout|all the time|anyone|everyone|anywhere|"
     r"any(?! idea| more| chance| luck)|each|all(?= \w+s\b)|in general|generally)\b"),
    ("value", r"(?<![\w/.])(?=[\w.-]*\d)(?=[\w.-]*[a-z])[\w-]{2,}(?:\.[\w-]+)*(?![\w/])|\b[\w.-]+:\d{2,5}\b|"
     r"\S@\S+\.\w+|#[0-9a-f]{6}\b|\b\d\d:\d\d"),
    ("or-else", r"\b(?:or|else|otherwise) (?:it|they|we|i|the|he|she|you)\b|, (?:i|we|they) can'?t\b|"
     + abroad.OR_ELSE),
    # plainly told: what somebody is, has and does
    ("tells", rf"{_BEGINS}(?:i|we) (?:(?:also|only|mostly|mainly|usually|always|generally|all|both) )*"
     rf"(?:(?:don'?t|do not|never) )?(?!(?:{_DID}|{_ACTED}|{_PASSES})\b)[a-z]{{2,}} \S|"
     rf"{_BEGINS}(?:i'?m|i am|we'?re|we are) (?:(?:also|both|all) )*(?!(?:{_MOODS})\b)(?![a-z]+(?:ing|ed)\b)\S|"
     r"\b(?:my|our) [a-z'-]+(?: [\w'./-]+){0,3}? (?:is|are|has|have|uses?|runs?|works?|lives?|speaks?|needs?|likes?|"
     r"hates?|eats?|takes?|starts?|closes?|opens?|comes?|goes|stores?|stays?|sits?|belongs?|requires?|sleeps?|plays?|"
     r"studies|attends?)\b(?! (?:\w+ing|\w+ed|gone|done|been|cold|down|up|back|broken|slow|late|off|out|not|dead|"
     r"full)\b)|"
     r"\b(?:is|are) (?:called|named)\b|"
     r"\b(?:i|we) (?:always |only )?(?:want|like|need) (?:[\w'-]+ ){0,3}(?:answers?|replies|responses|explanations|"
     r"summaries|examples)\b|" + abroad.TELLS),
    ("points-back", r"\b(?:it|this|that|them)[.!]?$"),
    ("soon", r"\b(?:in (?:an?|\d+|two|five|ten|a few|half an?) (?:sec|second|min|minute|hour|bit|moment)s?|talk later|"
     r"give me an?|brb|(?:starts|ends|leaves) in)\b"),
)  # fmt: skip

_PAST = (  # forms that are not those of the present, too
    r"(?:been|began|bought|broke|built|came|chose|did|done|felt|forgotten|found|gave|gone|got|had|heard|kept|knew|known|"
    r"left(?!-)|lost|made|met|misunderstood|paid|ran|said|saw|seen|sent|sold|spent|thought|told|took|tried|was|went|"
    r"were|wrote)\b"
)
_BY = r"(?<=\w )(?<!\bis )(?<!\bare )(?<!\bbe )"  # "is never edited" is a rule
_WHO = r"(?:(?<=\bi )|(?<=\b(?:we|he|it) )|(?<=\b(?:you|she) )|(?<=\bthey ))"
_HAPPENS = (  # to people, rather than that they do it
    r"(?:know|forget|remember|recall|understand|think|believe|see|hear|get|mind|care|mean|feel|find|notice|agree|doubt|"
    r"reali[sz]e|learn|lose|miss|hope|wonder|own|speak|live|sleep|have(?! to))\b"
)
_ANSWERED = (  # what "no" is an answer before, rather than a ban on
    r"i|i'm|you|we|he|she|it|it's|its|they|that|that's|thats|this|these|those|there|the|my|your|our|a|an|not|but|because|"
    r"wait|just|actually|please|let|don'?t|still|only|keep|use|leave|put|try|do|go|make|give|tell|take|get|i'?ll|i'?d"
)
_MENTIONS = re.compile(  # rules in somebody else's words, or in words to be written, translated, committed
    r"(?<!\w)[\"“][^\"“”]*\b(?:always|never|must|don'?t|do not|avoid|shall)\b[^\"“”]*\s[^\"“”]*[\"”](?!\w)|"
    r"(\b(?:says|saying|reads):|^(?:translate|rephrase)\b[^:]*:)\s.*",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:never (?:mind|say never)|than never|as always|always (?:a (?:pleasure|joy)|(?:good|nice|great|happy|"
    r"glad) to)|(?:don'?t|do not|doesn'?t) (?:(?:have|need) to|worry|bother|mention it|get me wrong)|can'?t (?:wait|"
    r"believe)|(?:must|have to) (?:say|admit|confess)|must be (?:joking|kidding|dreaming|crazy|mad|mistaken|confused|"
    r"wrong|right|new|tired))\b|"
    rf"^no (?:(?:luck|way|matter|chance|clue|wonder|doubt)\b|(?=(?:{_ANSWERED})\b))|"
    rf"(?:(?:^|{_BY})(?:never|always) (?={_PAST})|{_BY}(?:never|always) (?={_ED}))|"
    r"(?:(?<=\bwas )|(?<=\b(?:were|been) )|(?<=\bhad ))(?:never|always)\b|(?:(?<=\bis )|(?<='s ))only (?=an?\b)|"
    r"(?:(?<=\bit )|(?<=\b(?:this|that) ))(?:never|always) (?=\w+s\b)|"
    rf"{_WHO}(?:must (?=have (?:{_PAST}|{_ED}))|only (?={_PAST}|{_ED}))|"
    rf"(?<=\bi )(?:\w+ly |still |just |also )?(?:(?:never|always|only|don'?t|do not|dont) (?={_HAPPENS})|can'?t (?=(?:"
    r"log|open|find|see|get|remember|recall|think|tell|say|figure|access|reach|connect|understand|hear)\b))|"
    r"(?<=\byou )(?:never|always) (?=(?:listen|know|understand|forget|remember|learn|care|seem)\b)",
    re.IGNORECASE,
)

_ABROAD = re.compile(abroad.REPORTS, re.IGNORECASE)

WEIGHTS: dict[str, float] = {
    "explicit": 1.7,
    "abroad": 1.7,
    "decided": 1.4,
    "forbids": 1.0,
    "self": 1.5,
    "where": 1.1,
    "todo": 1.2,
    "foreign": -2.5,
    "habit": 0.8,
    "always": 0.7,
    "from-now-on": 0.4,
    "remember": 0.6,
    "must": 0.3,
    "need": -0.3,
    "should": -0.7,
    "prefer": 0.6,
    "dont": 0.4,
    "only": 0.5,
    "use": 0.5,
    "keep-x": 0.4,
    "goes": 0.8,
    "we": 0.3,
    "person": 0.7,
    "named": 0.7,
    "number": 0.4,
    "unit": 0.4,
    "date": 0.3,
    "code": 0.6,
    "is-x": 0.2,
    "because": 0.5,
    "pinned": 0.3,
    "lesson": 0.5,
    "procedure": 0.8,
    "open": 0.8,
    "decision": 0.6,
    "question": -0.9,
    "plain-question": -1.6,
    "wonders": -4.0,
    "imperative": -0.5,
    "please": -0.4,
    "thanks": -0.7,
    "joke": -1.1,
    "now": -0.9,
    "hypothetical": -1.3,
    "deictic": -0.3,
    "dont-it": -1.0,
    "past": -0.2,
    "others": -1.1,
    "wants": -0.9,
    "speaks": -0.5,
    "points": -0.9,
    "denies": -0.4,
    "if": -0.8,
    "step": -0.7,
    "looks": -0.5,
    "trails": -0.8,
    "you": 0.3,
    "picture": -2.5,
    "bare": -2.5,
    "ack": -0.3,
    "short": -1.6,
    "brief": -0.8,
    "long": 1.3,
    "long-plain": -0.1,
    "rule": 0.8,
    "brief-explicit": 0.5,
    "short-rule": 0.3,
    "item": 0.1,
    "listed": 1.5,
    "bounded": -2.5,
    "heads": -0.9,
    "symptom": -0.7,
    "did": -0.6,
    "you-did": -0.9,
    "which-one": -1.3,
    "when-i": -0.7,
    "under-way": -1.1,
    "tail-ask": -1.5,
    "lately": -1.0,
    "universal": 0.8,
    "value": 0.6,
    "or-else": 1.2,
    "long-symptom": -1.0,
    "told": 1.9,
    "told-briefly": 0.5,
    "soon": -1.1,
}
BIAS = -1.6


@cache
def compiled() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in PATTERNS)


def is_verb(word: str) -> bool:
    """One by which an order or a rule begins."""
    return (
        re.fullmatch(
            rf"{_DO}|always|never|only|nothing|nobody|everything|use|prefer|avoid|keep",
            word,
            re.IGNORECASE,
        )
        is not None
    )


def binding(text: str) -> str:
    """Without the words of rules where they tell what happened ("was never paid"), what somebody or something is like
    ("I always forget", "it never works"), what others say ("it says: never ask") or nothing ("never mind")."""
    said = _MENTIONS.sub(r"\1 “…”", text.replace("’", "'"))
    return _ABROAD.sub("", _REPORTS.sub("", said))


def score(unit: Unit) -> float:
    """Above zero: worth keeping."""
    return round(BIAS + math.fsum(WEIGHTS.get(name, 0.0) for name in features(unit)), 6)


def features(unit: Unit) -> list[str]:
    plain, rules = unit.text.replace("’", "'"), binding(unit.text)
    found = [name for name, pattern in compiled() if pattern.search(rules)]
    rule = not _RULES.isdisjoint(found)
    unspaced = len(pairs(plain)) // 2  # words, about
    short = len(plain.split()) + unspaced
    unnamed = len(words(_NAMES.sub(" ", plain))) + unspaced
    asks = plain.find("?") > 0.4 * len(plain) or ("?" in plain and bool(_ASKS.match(plain)))
    wonders = asks and (rule or "explicit" in found) and bool(_WONDERS.search(plain))
    told = ("tells" in found or "where" in found) and not asks and _PASSING.isdisjoint(found)
    shape = {
        "short": short <= 3,
        "brief": 4 <= short <= 6,
        "long": short >= 14,
        "long-plain": short >= 14 and _TELLING.isdisjoint(found),
        "rule": rule,
        "brief-explicit": "explicit" in found and short <= 6,
        "short-rule": rule and short <= 6,
        "item": unit.form == "item",
        "listed": unit.form == "item" and bool(_LISTS.search(unit.under)),
        "long-symptom": short >= 14 and "symptom" in found,
        "bounded": "imperative" in found and bool(_BOUNDS.search(plain)) and _LASTING.isdisjoint(found),
        "heads": plain.endswith(":"),
        "bare": unnamed < 3 < short or not unnamed,
        "foreign": short > 7 and not (told or "abroad" in found or "or-else" in found) and _is_foreign(plain, short),
        "plain-question": asks and ("explicit" not in found or wonders),
        "wonders": wonders,
        "told": told,
        "told-briefly": told and short <= 6,
    }
    return found + [name for name, true in shape.items() if true]


def _is_foreign(text: str, length: int) -> bool:
    return sum(word in COMMON for word in words(text)) * 10 < length


_RULES = frozenset(
    ("abroad", "always", "from-now-on", "prefer", "dont", "no-thing", "only", "x-not-y", "keep-x", "must", "pinned")
)
_LASTING = frozenset("explicit abroad always from-now-on prefer dont keep-x because universal".split())
_BOUNDS = re.compile(
    r", (?:but |and |with )?(?:no|only|at most|at least|max(?:imum)?)\b", re.IGNORECASE
)  # of one order
_PASSING = frozenset(
    "now lately symptom past did question under-way hypothetical you-did points points-back soon".split()
)
_TELLING = _RULES | {"person", "named", "number", "unit", "date", "code", "because", "lesson", "procedure", "open"}
_NAMES = re.compile(r"`[^`]*`|\S*[/\\]\S*")  # code, paths and addresses
_LISTS = re.compile(
    r"\b(?:rules?|basics|context|background|leftovers?|facts|notes?|remember|constraints?|preferences?|"
    r"conventions?|open|remains?|remaining|still|know|about (?:me|us)|set-?up|guidelines|principles|things (?:that|"
    r"to know))\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:and |but |so |or |ok,? )*(?:(?:will|would|can|could|should|has|have|do|does|did|is|are|was|were)(?:n't)? "
    r"(?:that|this|it|there|the|we|i|you|they|he|she)|what|why|how|when|where|who|which)\b",
    re.IGNORECASE,
)
_WONDERS = re.compile(  # asks whether there is a rule, or why; "could you never push?" is one
    r"^(?:(?:ok(?:ay)?|so|and|but|also|then|now|well|wait|hey|hi|hm+|oh|sorry|actually|btw|question)[,.:!]* )*(?:"
    r"(?:why|who|whose|which|(?:what|how)(?! (?:i|we)\b))\b|(?:(?:when|where) )?(?:"
    r"(?:is|are|was|were|does|did)(?:n't)?\b|(?:do|have|should|must|may|shall) you\b|"
    r"(?:do|has|have|should|must|may|shall|might|will|would|can|could)(?:n't)? (?:i|we|they|it|he|she|this|that|these|"
    r"those|there|the|our|my|any|every|each|all)\b(?! please)|would you (?:rather|prefer|recommend|say)\b|"
    r"(?:can|could|would|will) you (?:please |also |just )*(?:check|confirm|explain|find|look|remember|say|see|tell|"
    r"verify)\b[^?]{0,30}\b(?:whether|if|why|who|which|what|how|when|where)\b))|"
    r"[,;:–—-] (?:(?:should|must|shall|do|did|can|could|may) (?:we|i) \w|is (?:that|this|it) (?:right|true|correct)\b)",
    re.IGNORECASE,
)
