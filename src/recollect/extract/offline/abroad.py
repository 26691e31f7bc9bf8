"""The plainest words of rules, decisions and facts in other languages than English; nothing is done with them here.

German, French and Spanish as far as people say such things while they work; of others only words of rules.
"""

NEVER = r"\b(?:niemals|nie|jamais|nunca|jamás|nooit|aldrig|nigdy|никогда)\b|禁止|しないで|不要|절대|하지 마"
ALWAYS = (
    r"\b(?:immer|stets|toujours|siempre|sempre|altijd|alltid|zawsze|всегда)\b|必ず|常に|总是|始终|一定要|항상|반드시"
)
MUST = (
    r"\b(?:(?<!ich )muss(?! ich)|müssen|muessen|höchstens|mindestens|darf nur|dürfen nur|nur (?:noch )?(?:mit|über|per|"
    r"via|auf|montags|dienstags|mittwochs|donnerstags|freitags)|il (?:ne )?faut|doit|doivent|obligatoire|uniquement|"
    r"hay que|deben?|tienen? que|obligatorio|únicamente|deve|devono|devem|måste|musi|muszą|должен|должны)\b|必须"
)
NOT = (  # what is not to be done, or to be had
    r"\b(?:bitte (?:\w+ ){0,2}?nicht (?:\w+ ){0,3}?\w+en\b(?! kaputt)|(?:darf|dürfen) (?:nicht|keine?n?)|nicht erlaubt|"
    r"verboten|interdit|prohibido|(?:ab sofort|ab jetzt|bitte) keine?n?|s'il te plaît pas)\b|"
    r"^(?:und |et |y |aber |mais |pero )*(?:keine?n? (?!ahnung|problem|sorge|idee|panik|zeit|eile|lust|angst|chance|"
    r"wunder|frage|stress|thema)(?:[\w-]+ ){1,}|(?:surtout )?pas d(?:e |')(?!problème|souci|quoi|panique|chance|idée)|"
    r"n(?:e |')\w+(?:-\w+)? (?:pas|plus)\b|no (?:uses|hagas|pongas|toques|subas|escribas|borres|cambies)\b)"
)
PREFER = r"\b(?:bevorzug(?:e|t|en)|préf(?:ère|érons)|prefier[oe]|preferimos|preferisco|prefiro|wolę|предпочитаю)\b"
DECIDED = (
    r"\b(?:entschieden|beschlossen|vereinbart|geeinigt|wir (?:nehmen|bleiben bei|wechseln (?:auf|zu)|steigen auf)|"
    r"décidé|convenu|on (?:reste (?:sur|avec|chez)|passe (?:à|sur))|decidido|decidimos|acordado|nos quedamos con|"
    r"pasamos a|deciso|"
    r"besloten)\b"
)
FROM_NOW_ON = (
    r"\b(?:ab (?:jetzt|sofort|heute)|künftig|in zukunft|von nun an|dorénavant|désormais|à partir de maintenant|"
    r"(?:de|a partir de) ahora(?: en adelante)?)\b"
)
RULES = (
    rf"{NEVER}|{ALWAYS}|{MUST}|{NOT}|{PREFER}|{DECIDED}|{FROM_NOW_ON}|"
    r"\b(?:wir (?:nutzen|benutzen|verwenden)|bei uns|nous utilisons|on utilise|chez nous|usamos|utilizamos)\b"
)
OR_ELSE = r", (?:sonst|ansonsten|sinon|si no|de lo contrario)\b"
NOT_THAT = r", (?:nicht|pas|et pas|y no) (?:\w+ )?[\w`'./@-]+"
INSTEAD = r"\b(?:statt|anstatt|anstelle|au lieu d[e']|en (?:lugar|vez) de)\b"

_OWN = r"(?:mein|unser|dein)(?:e[rnms]?)?|mon|ma|mes|notre|nos|mis?|nuestr[oa]s?"
_IS = r"ist|sind|heißt|heißen|läuft|laufen|liegt|liegen|est|sont|s'appelle|tourne(?:nt)?|es|son|está|se llama|tiene"
_SIGN = r"(?:`[^`]+`|[\w-]*[./_:@][\w./_:@*-]*\w|port \d{2,}\b)"  # a path, an address
SELF = (  # what somebody is; what they think or feel just then is none of it
    r"^(?:(?:und|et|y|aber|also|übrigens|ach|hallo|moin|salut|hola|oye|ah)[,.!]* )*(?:"
    r"ich (?:bin|heiße|heisse) (?:übrigens |auch )?(?:eine? )?(?-i:[A-ZÄÖÜ])\w+(?: (?:und|von|bei|aus|in)\b|[.,;!]|$)|"
    r"ich (?:wohne|lebe|arbeite|programmiere|esse|trinke|spreche|nutze|benutze|verwende) (?!gerade|jetzt|noch|heute|"
    r"morgen)|"
    r"je suis (?!en |d'accord|pas |plus |sûre?|désolée?|contente?|prête?|là|bloquée?|perdue?|à |de |au |aux |sur |"
    r"dans )"
    r"\w+|j'utilise|je (?:m'appelle|travaille|habite|mange|parle) (?!encore|sur ça|là)|"
    r"(?:yo )?(?:soy (?!yo)|uso )\w+|me llamo \w|(?:yo )?(?:trabajo|vivo) (?:en|de|como|con)\b)"
)
TELLS = (
    rf"{SELF}|\b(?:ist|sind|est|sont|es|son) (?:{_OWN}) [\w-]+|"
    rf"^(?:(?:und|et|y),? )?(?:{_OWN}) [\w'-]+(?: [\w'./-]+){{0,2}}? (?:{_IS}) (?!dass|que)"
)
WHERE = (
    r"\b(?:liegt|liegen|läuft|laufen|kommen|gehört|gehören|steht|stehen|heißt|heißen|se trouve(?:nt)?|tournent?|"
    r"vont|van?|está|están|ist|sind|est|sont|es|son) (?:alle |immer |jetzt )?(?:in|unter|auf|bei|mit|nach|an|dans|"
    r"sur|sous|"
    rf"avec|en|a|con|ein|eine|un|une|una)(?: [\w-]+){{0,3}}?,? (?:ip )?{_SIGN}"
)
PASSING = (  # told of this moment alone
    r"\b(?:gerade|(?<!ab )jetzt|eben|gleich|vorhin|im moment|nochmal|vermutung|en ce moment|"
    r"(?<!partir de )maintenant|encore|(?<!de )ahora|ahora mismo|todavía)\b"
)
ORDERS = (  # what is asked for once, where no word of a rule comes with it
    r"^(?:(?:und|dann|jetzt|bitte|ok|ja|et|puis|maintenant|y|ahora)[,.!]? )*(?:schau|zeig|mach|änder|schreib|führ|"
    r"lösch|"
    r"öffne|erstell|füg|bau|gib|erklär|übersetz|prüf|lies|korrigier|reparier|ajout|supprim|corrig|montr|regard|écri|"
    r"cré|chang|lanc|expliqu|mett?|haz|añad|borr|cambi|muestr|mir|escrib|cre|explic|pon|sub)(?:e|s|a|ez|s-le)\b|"
    r"^(?:(?:und|dann|jetzt|bitte|ok|ja)[,.!]? )*(?:schau|zeig|mach|schreib|führ|füg|bau|gib|erklär|prüf|lies|haz|"
    r"pon)\b"
)
SYMPTOM = (
    r"\b(?:fehler(?:meldung)?|kaputt|abgestürzt|(?:geht|läuft|funktioniert|klappt) (?:\w+ )?nicht|erreur|plante|"
    r"(?:marche|compile|fonctionne) (?:toujours |plus |encore )?pas|falla|no (?:funciona|compila|arranca))\b"
)
REPORTS = (  # "still", "again and again", what never happened: no word of a rule
    r"\b(?:immer noch|noch immer|immer,? (?:wenn|wieder|mehr|weniger|nur dann|schlimmer|besser)|wie immer|"
    r"(?:habe?|hat|haben|hatten?|ist|war|waren|wurde) (?:[\w]+ ){0,2}?(?:noch )?nie|nie (?:verstanden|gesehen|gehört)|"
    r"comme toujours|toujours (?:pas|en cours|cassée?s?|rouge|la même|le même|bloquée?)|"
    r"(?:n'a|n'ai|n'avait|n'était|n'ont) jamais|como siempre|siempre (?:lo mismo|igual|que)|nunca (?:ha|he|había|"
    r"funcionó))\b|"
    r"^no (?:funciona|va|sirve|compila|arranca|entiendo|sé|veo|hay|es|está|me|se|lo|la|te)\b"
)
