"""Secrets out of text, before anything of a transcript is stored or sent.

`scan` says where secrets stand, `redact` puts `[redacted:<rule>]` in their place. Three tables hold every rule:
KEYS (secrets that have a shape of their own, found bare), PLACES (a secret is what stands there: a URL's password,
a header, a flag) and WORDS (names that tell: what is tied to them is judged by how odd it looks).

It parses no language, asks no provider whether a key is alive, and lets a secret without a shape pass when nothing
beside it tells. One RE2 pass over the bytes finds the landmarks where a rule could apply; Python looks only there,
at a bounded stretch of text, so that the time stays linear whatever the input.

Invariant: scan(redact(text)) is empty for every text, hence redact is idempotent; no text raises.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

VERSION = "redact_v1"


@dataclass(frozen=True, slots=True)
class Finding:
    """One secret: text[start:end] in characters, and the rule that found it."""

    rule: str
    start: int
    end: int


class Key(NamedTuple):
    """A secret with a shape: `mark` (RE2 and re) begins it, `body` follows. With `back`, the mark is inside it."""

    rule: str
    mark: str
    body: str  # bounded wherever it can fail after a long run, so that hostile input stays linear
    mixed: bool = False  # the mark proves little: the body must look random, too
    back: str = ""  # what stands before the mark


class Place(NamedTuple):
    """A secret is group v of `find`, which matches at `mark`; an empty v says: read the value that begins there."""

    rule: str
    need: int  # the least `oddness` of the value; -1 base64 of user:password, -2 cookies
    mark: str
    find: str
    line: str = ""  # what has to stand before it on the same line
    back: int = 0  # how many characters before the mark `find` may begin


class Word(NamedTuple):
    """A name that tells. The numbers are the least `oddness` of a value, by how the value is tied to the name."""

    rule: str
    words: str
    quoted: int  # name = "value"
    tight: int  # NAME=value, --name value, <name>value</name>
    bare: int  # name: value
    loose: int  # the name is value
    short: int  # the least length of a value
    whole: bool = False  # the word does not count as the end of another word


NEVER = 9
_PEM = (  # up to the END line; without one, the lines of base64 that follow
    r"(?: BLOCK)? ?-----?(?:(?:(?!---- ?BEGIN)[\s\S]){16,16000}?---- ?END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{0,5}"
    r"|(?:(?:\s|\\+[nr])+[\w-]{1,30}: [^\n\\]{0,200}){0,6}"
    r"(?:(?:[\s\"'+>|#*,;()→0-9]|\\+[nrt]){0,40}[A-Za-z0-9+/=]{16,})+"
    r"(?:(?:\s|\\+[nr]){1,8}(?=[A-Za-z]*[0-9+/=])[A-Za-z0-9+/]{1,15}={0,2})?)"
)

# fmt: off
_PREFIXED = (  # keys that are a prefix and so many or more of A-Z a-z 0-9 _ -
    ("anthropic", r"sk-ant-", 20), ("openrouter", r"sk-or-", 20), ("openai", r"(?:sk|sess)-", 20),
    ("google", r"(?:AIza|GOCSPX-|1//0|4/0A|AQ\.Ab)", 20), ("github", r"(?:gh[pousr]_|github_pat_)", 30),
    ("npm", r"npm_", 36), ("pypi", r"pypi-", 50), ("huggingface", r"(?:hf|api_org)_", 30), ("linear", r"lin_[a-z]+_", 30),
    ("gitlab", r"GR1348941", 16), ("digitalocean", r"do[por]_v1_", 40), ("vault", r"hv[sbr]\.", 20), ("figma", r"fig[dour]_", 30),
    ("notion", r"(?:secret|ntn)_", 40), ("shopify", r"shp(?:at|ca|pa|ss|ua|tka)_", 32), ("square", r"sq0[a-z]{3}-", 20),
    ("postman", r"PMA[KT]-", 24), ("newrelic", r"NR(?:AK|II|IQ|RA|JS|SP)-", 16), ("groq", r"gsk_", 40), ("xai", r"xai-", 40),
    ("replicate", r"r8_", 30), ("perplexity", r"pplx-", 30), ("supabase", r"sb(?:p|_secret)_", 20), ("netlify", r"nf[pcoub]_", 30),
    ("vercel", r"vc[paikrb]_", 24), ("docker", r"dckr_[po]at_", 20), ("ruby-gems", r"rubygems_", 40), ("pulumi", r"pul-", 40),
    ("circleci", r"CCI(?:PAT|PRJ)_", 30), ("buildkite", r"bk(?:ua|ct|at|pt)_", 24), ("heroku", r"HRKU-", 30),
    ("tailscale", r"tskey-[a-z]{2,12}-", 16), ("tavily", r"tvly-", 16), ("brevo", r"x(?:key|smtp)sib-", 40),
    ("resend", r"re_[A-Za-z0-9]{8}_", 20), ("langsmith", r"ls(?:v2_[a-z]{2}_|__)", 30), ("pinecone", r"pc(?:sk|l)_", 30),
    ("nvidia", r"nvapi-", 40), ("cloudflare", r"(?:cf(?:ut|at|k|ast)_|v1\.0-[0-9a-f]{24}-)", 36), ("jina", r"jina_", 40),
    ("dropbox", r"sl\.(?:u\.)?[\w-]{14}", 46), ("cerebras", r"csk-", 40), ("together", r"tgp_v1_", 30), ("fireworks", r"fw_", 20),
    ("elevenlabs", r"sk_[0-9a-f]{8}", 32), ("firecrawl", r"fc-[0-9a-f]{8}", 24), ("voyage", r"pa-", 40), ("e2b", r"e2b_", 36),
    ("wandb", r"wandb_v1_", 40), ("posthog", r"ph[xs]_", 30), ("neon", r"n(?:api|pg)_", 12), ("render", r"rnd_", 20),
    ("1password", r"(?:ops_ey|A3-[0-9A-Z]{6}-)", 30), ("sonar", r"sq[upa]_", 40), ("sourcegraph", r"sg[pd]_", 40),
    ("contentful", r"CFPAT-", 40), ("plaid", r"access-(?:sandbox|production)-", 36), ("typeform", r"tfp_", 40),
    ("easypost", r"EZ[AT]K", 50), ("jfrog", r"AKCp[0-9]", 60), ("yandex", r"(?:AQVN|y[0-3]_)", 35), ("prefect", r"pn[ub]_", 30),
    ("age", r"AGE-SECRET-KEY-(?:PQ-)?1", 40), ("wallet", r"[xyz]prv[0-9A-Za-z]{8}", 96),
)
KEYS = (  # the same, and those of another shape
    *(Key(rule, mark, rf"[\w-]{{{least},400}}", True) for rule, mark, least in _PREFIXED),
    Key("private-key", r"----[- ]?BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY", _PEM),
    Key("private-key", r"Private-Lines: [0-9]+", r"(?:\s|\\[nr])+(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])*)+"),
    Key("crypt", r"\$(?:2[abxy]|[156y]|apr1|argon2(?:id?|d))\$", r"[\w./$=,+-]{26,300}", True),
    Key("jwt", r"eyJ[\w-]{6}", r"[\w-]{2,1500}\.[\w-]{6,}(?:\.[\w-]*){0,3}"),
    Key("aws", r"A(?:KIA|SIA|BIA|CCA)", r"[A-Z0-9]{16}(?![A-Z0-9])(?:[^\w/+]{1,12}[\w/+]{40}(?![\w/+=]))?"),
    Key("aws", r"(?:ABSK|FwoGZXIvYXdz|IQoJb3JpZ2lu)", r"[A-Za-z0-9+/%]{60,}={0,2}"),
    Key("google", r"ya29\.", r"[\w.-]{20,400}", True),
    Key("azure", r"[0-9]Q~", r"[\w.~-]{30,40}", back=r"[\w.~-]{3}"),
    Key("azure", r"AZDO", r"[A-Za-z0-9]{4}", back=r"[A-Za-z0-9]{76}"),
    Key("azure", r"(?:\+AMC|\+ASt|AzCa|APIM|AzFu|AzSe|ACDb)", r"[\w+/]{4,8}={0,2}", True, r"[A-Za-z0-9+/]{32,76}"),
    Key("gitlab", r"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-", r"[\w.-]{16,300}", True),
    Key("slack", r"(?:xox[abcdeoprs][.-]|xapp-)", r"[\w%.-]{16,}"),
    Key("stripe", r"(?:[sr]k_(?:live|test|prod)|whsec)_", r"[A-Za-z0-9+/]{16,}={0,2}"),
    Key("stripe", r"_secret_", r"[A-Za-z0-9]{16,}", back=r"(?:pi|seti|cs|src)_[A-Za-z0-9]{14,34}"),
    Key("twilio", r"(?:AC|SK)[0-9a-f]{8}", r"[0-9a-f]{24}(?![0-9A-Za-z])"),
    Key("sendgrid", r"SG\.", r"[\w-]{16,32}\.[\w-]{32,}"),
    Key("mailgun", r"(?:pub)?key-[0-9a-f]{8}", r"[0-9a-f]{24}(?![0-9A-Za-z])"),
    Key("mailgun", r"-[0-9a-f]{8}-", r"[0-9a-f]{8}(?![0-9A-Za-z-])", back=r"[0-9a-f]{32}"),
    Key("mailchimp", r"-us[0-9]", r"[0-9]?(?![0-9A-Za-z])", back=r"[0-9a-f]{32}"),
    Key("telegram", r"[0-9]:AA[\w-]{4}", r"[\w-]{28,}", back=r"[0-9]{7,11}"),
    Key("discord", r"\.[\w-]{6}\.[\w-]", r"[\w-]{26,}", True, r"[MNO][\w-]{22,30}"),
    Key("doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"[\w.-]{30,}"),
    Key("databricks", r"(?:dapi|dose|dkea)[0-9a-f]{8}", r"[0-9a-f]{24}(?:-[0-9])?"),
    Key("grafana", r"gl(?:sa|c)_", r"[\w+/=]{20,400}", True),
    Key("terraform", r"\.atlasv1\.", r"[\w=-]{50,}", back=r"[A-Za-z0-9]{14}"),
    Key("atlassian", r"AT(?:ATT|CTT|BB|TA|SP)[A-Za-z0-9]{4}", r"[\w+=-]{20,400}", True),
    Key("facebook", r"EAA[A-Za-z]", r"[\w-]{56,400}(?![\w+=])", True),
    Key("planetscale", r"pscale_(?:tkn|pw|oauth|app_secret)_", r"[\w.=-]{30,}"),
    Key("newrelic", r"NRAL", r"(?!\w)", back=r"[0-9a-fF]{32,40}"),
    Key("sentry", r"sntry[su]_", r"[\w+/=-]{30,}"),
    Key("fly", r"(?:FlyV1 )?f(?:m[12][ar]?|o1)_", r"[\w+/=,-]{30,}", True),
    Key("airtable", r"pat[A-Za-z0-9]{14}\.", r"[0-9a-f]{60,}"),
    Key("dynatrace", r"dt0[a-z][0-9]{2}\.", r"[0-9A-Z]{24}\.[0-9A-Z]{60,}"),
    Key("launchdarkly", r"(?:sdk|mob|api)-[0-9a-f]{8}-", r"[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"),
    Key("paypal", r"access_token\$(?:production|sandbox)\$", r"[0-9a-z]{16}\$[0-9a-f]{32}"),
    Key("alibaba", r"LTAI[A-Za-z0-9]{4}", r"[A-Za-z0-9]{8,20}(?![\w/+=])", True),
    Key("tencent", r"AKID[A-Za-z0-9]{4}", r"[A-Za-z0-9]{28}(?![\w/+=])", True),
)

_TO = r"\\{0,3}[\"'`]?\]?\s{0,4}(?::|=>|=|,)\s{0,4}"  # between the name of a header and its value
_PAIR = _TO + r"\\{0,3}[\"'`]?[\w.%-]{1,64}="  # the same, up to the value of the first cookie
_HOST = r"(?:\[[0-9a-fA-F:]+\]|[\w.${}%-]+)(?::[\w${}]+)?(?:[/?#\s\"'`,;()<>\\\]|]|$)"
_WORD = r"(?(q)[^\"'\n\\]{3,200}|[^\s\"'`|\\]{3,200})"  # up to the quote that group q opened, or white space
_AT = r"[^\s/\"'`{(\[<]@[\w\[${%]"
_STDIN = r"(?:--password-stdin|--with-token|sudo -S|chpasswd|passwd --stdin)"

PLACES = (
    Place("url-token", 4, _AT, r":\\?/\\?/(?P<v>[\w.~%+=-]{16,200}(?::[^\s@/:\"'<>]{0,64})?)@[\w\[]", back=250),
    Place("url-password", 1, _AT, r":\\?/\\?/[^\s/?#@:\"'<>`\\]{0,64}:(?!\d{1,5}(?:[/?#]|$))(?P<v>[^\s\"'<>`\\]{1,200}?)"
          r"@(?=" + _HOST + r")(?![\w-]+/[^\s\"'<>@?=&]*@[\w-]+[.:])", back=250),
    Place("url-password", 1, _AT, r"[\w.%+-]{1,64}:(?P<v>[^\s\"'<>`]{1,100})@(?:tcp|udp|unix)\(", back=180),
    Place("url-password", 2, _AT, r"(?<![\w/.-])[\w.%+-]{1,64}:(?P<v>[^\s\"'<>`/\\:@][^\s\"'<>`/]{4,100})"
          r"@(?:localhost|\d+\.\d+\.\d+\.\d+|[\w-]+\.[\w.-]+):\d", back=180),
    Place("authorization", 2, r"(?i:authorization)[\"'\\`\]\s]{0,8}[:=,]", r"(?<![A-Za-z])\w+" + _TO + r"(?P<v>)"),
    Place("authorization", 3, r"(?i:bearer)(?:\s|%20)", r"\w+(?:\s{1,4}|%20)(?P<v>)"),
    Place("authorization", -1, r"(?i:basic)[ %][\w+/]{6}", r"\w+(?: |%20)(?P<v>[\w+/]{6,2000}={0,2})(?![\w+/])"),
    Place("cookie", 3, r"(?i:set-cookie)", r"[\w-]+" + _PAIR + r"(?P<v>[^;\s\"'`\\]{6,4000})"),
    Place("cookie", -2, r"(?i:cookie)[\"'`\\\]]{0,4}\s{0,4}[:=,]", r"(?<!-)\w+" + _PAIR + r"(?P<v>[^\n\"'`\\]{6,4000})"),
    Place("cookie", -2, r"-(?:b|-cookie)[ =]", r"[-\w]+[ =]+[\"']?[\w.%-]{1,64}=(?P<v>[^\n\"'`\\]{6,4000})", r"\bcurl\b"),
    Place("cookie", 3, r"(?:PHPSESSID|JSESSIONID|connect\.sid|laravel_session)=", r"[\w.]+=(?P<v>[^;\s\"'`\\]{8,400})"),
    Place("password", 1, r"-(?:[uUa]|-user|-proxy-user)[ =\"']", r"(?<![\w-])[-\w]+[ =]{0,3}(?P<q>\\?[\"'])?[^\s:\"'\\]{1,64}:"
          r"(?P<v>" + _WORD + r")", r"\b(?:curl|https?|wget|xh)\b"),
    Place("password", 1, r"\s-p[^\s=-]", r"\s-p(?P<v>)", r"\b(?:mysql|mariadb)"),
    Place("password", 1, r"(?:redis-cli|sqlcmd|unzip|sshpass|mongo\w*|(?:docker|podman|nerdctl|registry) login)\s",
          r"(?:redis-cli\s(?:[^\n|;]{0,160}?\s)?-a|(?:sqlcmd|unzip)\s(?:[^\n|;]{0,160}?\s)?-P"
          r"|(?:sshpass|mongo\w*|\w+ login)\s(?:[^\n|;]{0,160}?\s)?-p)\s*(?P<v>)(?=[^\s-])"),
    Place("password", 1, _STDIN, r"(?:echo|printf)\s+(?:-n\s+)?(?P<q>\\?[\"'])?(?P<v>" + _WORD + r")(?:\\?[\"'])?\s*"
          r"\|[^|\n]{0,80}?" + _STDIN, back=300),
    Place("password", 1, r"-pass(?:in|out)?\s[\"']?pass:", r"-pass\w*\s[\"']?pass:(?P<v>)"),
    Place("password", 1, r"machine\s", r"machine\s+\S{1,80}\s+login\s+\S{1,80}\s+password\s+(?P<v>\S{3,200})"),
    Place("password", 1, r"(?i:identified by|(?:with|encrypted) password)\s", r"\w+ \w+\s+(?P<v>)(?=\\?')"),
    Place("password", 1, r"ConvertTo-SecureString\s", r"\w+-\w+\s+(?:-String\s+)?(?P<v>)(?=[\"'])"),
    Place("password", 2, r"(?i:auth|login|authenticate)\s*=?\s*\(\s*\\?[\"']",
          r"\w+\s{0,3}=?\s{0,3}\(\s{0,40}\\?[\"'][^\"'\n]{0,80}[\"']\s{0,4},\s{0,40}(?P<v>)(?=\\?[\"'])"),
    Place("url-query", 4, r"[?&](?:amp;)?(?i:key|k|sig|auth|jwt|(?:x-(?:amz|goog)-)?signature)=",
          r"[?&](?:amp;)?[\w-]+=(?P<v>[^\s&\"'<>`#\\]{12,2000})"),
    Place("seed-phrase", 0, r"(?i:mnemonic|(?:seed|recovery|backup|secret)[ _-]phrase)",
          r"\w+(?:[ -]\w+)?[^\w\n]{0,12}(?:is\W{1,4})?(?P<v>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"),
    Place("webhook", 3, r"(?:hooks\.slack(?:-gov)?\.com|discord(?:app)?\.com/api|webhook\.office\.com|hooks\.zapier\.com)/",
          r"[\w.-]+/(?:api/)?(?:v\d+/)?(?:services|workflows|triggers|webhooks|webhookb2|hooks/catch)/(?P<v>[\w/@+-]{12,400})"),
    Place("private-key", 4, r"\"d\\?\"\s?:\s?\\?\"[\w-]{20}", r"\"d\\?\"\s?:\s?\\?\"(?P<v>[\w-]{40,1000})"),
    Place("secret", 3, r"(?i:as|is) (?i:the|my|your|our|a|an) (?i:[\w-]+ )?(?i:password|passphrase|api key|token|secret)",
          r"(?P<v>[^\s\"'`]{8,90})[\"'`]?,? (?:as|is) (?:the|my|your|our|an?) ", back=100),
)

_OF = (  # a key of what; any other key is the weaker word further down
    r"(?:api|access|auth|private|secret|sign(?:ing|ature)?|(?:en|de)crypt(?:ion)?|master|service|account|deploy|admin"
    r"|app|licen[cs]e|webhook|client|shared|subscription|project|consumer|hmac|jwt|ssh|root|server|write)"
)
WORDS = (
    Word("password", r"pass[ _-]?(?:word|phrase|code)|passw(?:d|rd|ort)|pwd|(?:db|ssh|smtp|root|user|admin)pass|kennwort"
         r"|contrase(?:n|ñ)a|senha|wachtwoord|mot de passe|пароль|密码|密碼|パスワード", 1, 1, 2, 2, short=4),
    Word("secret", r"secret|token|credential|recovery[ _-]code|(?:my|our|this) key|" + _OF + r"[ _.-]?key", 3, 2, 3, 3, short=8),
    Word("secret", r"(?:^|[^A-Za-z0-9])(?:auth|jwt|creds?|otp)|(?-i:_PAT)", 3, 3, 4, NEVER, short=12, whole=True),
    Word("password", r"(?:^|[^A-Za-z0-9])(?:pass|pw|psk)|(?-i:[a-z]Pass)", 2, 2, 3, NEVER, short=6, whole=True),
    Word("key", r"[\w-]key|salt", 4, 4, 4, NEVER, short=16),
)
# fmt: on
_ABOUT = frozenset(  # a name that goes on like this is about a secret, not one: token_count, password.length
    "age arn arg args at attempts auth based bits budget builder bytes cache chars class cls com config context cost"
    " count counter counts counting dialog digest dir encode encoder endpoint entry env error errors exists exp expire"
    " expired expires expiration expiry factory field fields file filename files fingerprint fn form format func go"
    " handler hash header headers hint html id ids idx index info input invalid iter iterator js json kind label len"
    " length less level limit limits list lists manager map max md message min mode model msg name names num obj object"
    " org page param params parser path pattern per policy pool pos position prefix price prompt protected provider ptr"
    " py rate ratio reader ref regex required requirements reset resolver rs rule rules schema scope scopes script"
    " service set size source span splitter state status storage store stream strength suffix sum tests total ts tsx"
    " ttl txt type types uri url urls usage used users utils valid validation validator version view window writer"
    " yaml yml".split()
)
_PUBLIC = frozenset(  # a name that begins like this is no secret: max_tokens, next_token, primary_key
    "bos cache cached cancellation cls completion context continuation cursor cycle dedup dedupe design each end eos"
    " estimated every first foreign group hash idempotency in input item last lookup map mask max min n next no num"
    " object one original out output pad page pagination partition per prefix primary prompt public reasoning remaining"
    " resume row s3 sep single sort special start stop sync syntax thinking total two unique unk used".split()
)
_NEUTRAL = re.compile(  # or goes on like this, and says no more
    r"s|v?\d+|prod|production|dev|staging|stage|live|test|old|new|value|val|base|raw|plain|plaintext|b64|base64|hex|main"
    r"|default|primary|secondary|current|confirm|confirmation|again|repeat|verify|here|github|gitlab|aws|db|admin|root"
)

# ---- What a value looks like -----------------------------------------------------------------------------------

_FAKE = re.compile(  # stands for a secret: placeholders, expansions, templates, regular expressions
    r"\[redacted|(?<![A-Za-z0-9])(?:your|Your|YOUR)|(?:example|placeholder|change.?me|replace.?(?:me|with|this)|redacted|dummy)"
    r"|(?:EXAMPLE|PLACEHOLDER|CHANGE.?ME|REPLACE.?(?:ME|WITH|THIS)|REDACTED|DUMMY)|[_-](?:here|HERE)$|x{5}|X{5}|(.)\1{6}|abcdefghijk|ABCDEFGHIJK"
    r"|\$\{|\{\{|\$\(|#\{|%\(|\.\.\.|…|\*{3}|•|^%(?:[sd]|[a-z_]\w*%)$|^<[\w\s:-]*>?$|^\[[\w\s-]*\]?$"
    r"|\{[a-z_][\w.\[\]()]*\}|^\{|\(\?|\[\^|\[0-9|\[[aA]-|\\[sSwWdD]|^--[a-z]|^&(?:lt|#)|\(\)|\[\\x|^(?:\\x[0-9a-f]{2})+$|^[\w\s./:=-]*%[sd](?![\w%])"
)
_ID = re.compile(  # has digits and is no secret: versions, dates, sizes, digests, addresses, ids of providers
    r"(?i)(?-i:[A-Z]{1,5}-?\d+(?:[.-]\d+)+$|[A-Z]{2,6}-\d+$)|v?\d+\.\d|\d{4}-\d\d-\d\d|\d\d?:\d\d|(?:sha\d+|md5)[-:]|data:|[a-z][a-z0-9+.-]*://|#[0-9a-f]{3,8}$"
    r"|0x[0-9a-f]{1,16}(?:u?ll?)?$|(?:\d+(?:\.\d+)?(?:px|r?em|[kmgt]i?b?|ms|s|h|d|min|x|%)?[/x~+-]?){1,3}$"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}$|ssh-|ecdsa-|(?:msg|toolu|srvtoolu|req|call|chatcmpl|resp|run|thread"
    r"|asst|file|price|cus|evt|sub|prod|acct|pk_test|pk_live|pi|ch)[_-]\w{10,}$"
)
_TECH = re.compile(  # digits that belong to a term
    r"(?i)sha-?\d+|base-?(?:16|32|58|64)|utf-?(?:8|16)|oauth-?2(?:\.0)?|x\.?509|[ial]\d\d?[nty]\b|k8s|s3|ec2|md5|http[23]"
    r"|ipv[46]|b64|\dfa|u?int\d+|float\d+|aes-?\d*|[hrep]s(?:256|384|512)|ed25519|p2p|m2m|e2e|win32|x86|(?:amd|arm)64"
    r"|pbkdf2|argon2(?:id?|d)?|pkcs\d+|gpt-?\d\w?|v\d+(?:alpha|beta)\d*|(?-i:V\d+(?=[A-Z]))|es\d|py3|web3|log4j|n8n|id3|mp[34]|h26[45]|p12"
)
_PATH = re.compile(
    r"(?:[~.]{0,2}/|[A-Za-z]:[\\/]|\$\w+/|[\w.@-]+[/\\][\w.@+-]+[/\\]|[A-Za-z_.@-]+[/\\](?=[^0-9/\\]*$))[\w.@+-]*(?:[/\\][\w.@+-]*)*$"
    r"|[\w.-]+\.(?:[a-z]{1,4}|ya?ml|json5?|toml)$"
)
_CODE = re.compile(
    r"(?:await|new|lambda|function|async|not|self|this|return|typeof|yield)\b|[({\[<]"
    r"|(?P<head>[&*!.-]?[A-Za-z_$][\w$]*)(?P<rest>(?:(?:\?\.|\.|->|::)(?!\d)[\w$]*)+(?:[(\[{<].*)?|[(\[{<].*)?$"
)
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_TELLING = re.compile(r"(?i)passw|pwd|secret|token|credential|key|auth")
_PLAIN = frozenset(
    "string str text password passwd passwort passphrase secret token pass pwd required optional none null nil true"
    " false undefined empty missing invalid incorrect wrong hidden user username bool boolean int integer number object"
    " any unknown bytes char default value field input email name login disabled enabled never always bearer basic"
    " digest oauth jwt auth click see use enter forgot reset change same expired revoked correct here this that masked"
    " encrypted hashed plain static void public private protected readonly".split()
)
_PROSE = frozenset(
    "a an and are at be by can do enter for from has have if in is it must no not of on or please the this to with"
    " you your".split()
)
_BIGRAMS = frozenset(  # the most common ones in English and in names of programs
    "er in te on re ti at es st en le or nt co ar al de ra se io ed ng li ri an ro it ta me tr et ma ic ne ce as is ec"
    " ac ns si pe ve nd ct di la to ca pr ea lo pa el ex ss ge na ch un fi ou rs ol th am nc il po he om ut ur rt ll mp"
    " pl ts no em id im ty ap ad od ni ul ig mi so ot ha ke ab su ie rr oc ck mo bl da ia us va sp op ag ep ai ba ho fo"
    " hi cl sc gr sh ef tt oo os ci pt iv rm ly vi do um ee ir tu qu yp ow lt cr be ue cu pi up ip lu ry if wa ls fa eg"
    " nf iz bo ev pp bi sa ub ru rc ay ib fe ff ze rd bu gi au rn wi ga og rg du ov ds ua".split()
)


def oddness(value: str, bare: bool = False) -> int:
    """How unlike words, code and placeholders it is: 0 no secret, 1 words, 2 words and digits, 3 odd, 4 random."""
    if len(value) < 3 or value.lower() in _PLAIN or _FAKE.search(value) or _ID.match(value):
        return 0
    if " " in value:
        return _phrase(value)
    core = _TECH.sub("", value)
    pieces = _PIECES.findall(core)
    size = sum(map(len, pieces))
    mean = size / len(pieces) if pieces else 0.0
    if mean >= (2.3 if value[0] in "./~" else 2.9) and _PATH.match(value) and not _gibberish(core):
        return 0
    if (bare and _is_code(value, mean)) or (mean >= 2.5 and re.fullmatch(r"\$\w+", value)):
        return 0
    symbol = any(c in "!@#$%^&*?~" for c in core)
    digit = any(c in "0123456789" for c in core)
    if not any(c.isalpha() for c in core):
        return 1 if digit and (symbol or core.isdigit()) else 0
    if re.fullmatch(r"[0-9a-fA-F-]{32,}", value) and len(set(value)) >= 8:
        return 4
    if not digit and mean >= 2.9 and _TELLING.search(core):
        return 0
    noise = _is_noise(core, size, mean)
    if digit and not noise and mean >= 2.9 and not symbol and not re.search(r"[A-Za-z][0-9]+[A-Za-z]", core):
        return 2
    if not digit and not noise:  # words; with a symbol, very many or a very long one they are a pass phrase
        return 2 if symbol or re.fullmatch(r"[a-z]{18,}|[a-z]+(?:-[a-z]+){3,}", core) else 1
    random = mean < 2.8 or (digit and (noise or mean < (3.3 if len(value) < 32 else 4.5)))
    return 2 if len(value) < 8 else 4 if random and len(value) >= 16 and len(set(value)) >= 8 else 3


def _phrase(value: str) -> int:
    """Several words: a pass phrase has no sentence in it."""
    words = value.lower().split()
    if len(words) > 8 or not _PROSE.isdisjoint(words) or _TELLING.search(value):
        return 0
    if len(words) >= 4 and value.islower() and all(word.isalpha() for word in words):
        return 1
    return 2 if len(words) <= 4 and oddness("".join(words)) >= 3 else 0


def _gibberish(value: str) -> bool:
    """Letters that no language puts side by side so often."""
    runs = re.findall(r"[a-z]{2,}", value.lower())
    pairs = [run[i : i + 2] for run in runs for i in range(len(run) - 1)]
    rare = sum(pair not in _BIGRAMS for pair in pairs)
    return len(pairs) >= 4 and (
        rare > 0.45 * len(pairs) or re.search(r"[b-df-hj-np-tv-xz]{6}", value.lower()) is not None
    )


def _is_noise(core: str, size: int, mean: float) -> bool:
    """Letters that make no words, by their case or by their neighbours."""
    if size < 8 or mean <= 2:
        return size >= 8
    if mean < 2.8 and size >= 16:
        return True
    return (size >= 10 or mean < 3) and bool(re.search("[A-Z]|[a-z]{8}", core)) and _gibberish(core)


def _is_code(value: str, mean: float) -> bool:
    """An expression rather than a literal: a call, an attribute, a name made of words."""
    match = _CODE.match(value)
    if match is None:
        return False
    head, rest = match["head"], match["rest"]
    if head is None:
        return True
    if rest:
        return mean >= 2.9 or head.islower() or rest == "(" or "_" in head or (head.isalpha() and len(head) > 3)
    return mean >= 2.9 and ("_" in head or _TELLING.search(head) is not None)


def _is_basic(value: str) -> bool:
    """Base64 of user:password."""
    try:
        raw = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in raw and all(31 < byte < 127 for byte in raw)


def _is_jar(value: str) -> bool:
    """Cookies, at least one of which carries something."""
    return any(oddness(part.partition("=")[2] or part) >= 2 for part in value.split("; "))


# ---- Where a value begins and ends -----------------------------------------------------------------------------


class Value(NamedTuple):
    start: int
    end: int
    quoted: bool
    wrapped: bool = False  # the argument of a call: SecretStr("...")


_OPEN = re.compile(
    r"(?P<call>[A-Za-z_][\w.:]{0,40}\(\s{0,4})?[rRbBfFuU@$&]{0,2}(?P<esc>\\{0,7})(?P<q>\"{3}|'{3}|[\"'`“‘„«]|&quot;)"
)
_CLOSER = {"“": "”", "‘": "’", "„": "“", "«": "»"}
_SCHEME = re.compile(
    r"(?i)(?:bearer|basic|token|digest|api-?key|key|bot|oauth|ssws|negotiate|aws4-hmac-sha256)"
    r"(?:[ \t]+|%20|=(?=[A-Za-z0-9]))"
)
_BARE = re.compile(  # ends at white space; at a quote, an escape or a separator only where something else begins
    r"(?:[^\s\"'`\\<,;&|\[]|\\(?![nrt\"'`\\]|u00(?:0|2[027]|3[ce]))|<(?!/)|\[(?!redacted:)|(?<=\w)[\"'`](?=\w)"
    r"|[,;&|](?![\s\"'`\\,;&|]|$|quot;|[A-Za-z_][\w.-]{0,40}[=:])){1,400}"
)


def _closing(text: str, start: int, quote: str, depth: int) -> int:
    """Where a string that begins at start ends: at its quote, escaped as often as the opening one; -1 if nowhere."""
    at = start
    while (at := text.find(quote, at, start + 1000)) != -1:
        slashes = 0
        while at - slashes > start and text[at - slashes - 1] == "\\":
            slashes += 1
        if slashes < depth or slashes % (2 * (depth + 1)) == depth:
            return at - min(slashes, depth)
        at += 1
    return -1


def _read(text: str, pos: int) -> Value | None:
    """The value that begins at pos: a string without its quotes, or a bare word without trailing punctuation."""
    opened = _OPEN.match(text, pos)
    start, end = (opened.end() if opened else pos), -1
    if opened:
        quote = opened["q"]
        end = _closing(text, start, _CLOSER.get(quote, quote), len(opened["esc"]))
        if quote in "\"'“‘„«" and text.find("\n", start, end) >= 0:
            end = -1  # not closed on its line
    if scheme := _SCHEME.match(text, start):
        start = scheme.end()
    closed = end >= 0
    if not closed:
        bare = _BARE.match(text, start)
        end = start + len(bare.group().rstrip(".,;:)]}>")) if bare else start
    else:
        marker = text.find("[redacted:", start, end)
        inside = text[start : marker if marker >= 0 else end]
        start += len(inside) - len(inside.lstrip())
        end = start + len(inside.strip())
    return Value(start, end, closed, bool(closed and opened and opened["call"])) if end > start else None


# ---- From a landmark to a finding ------------------------------------------------------------------------------

_NAME_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_ESCAPED = re.compile(r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|=3D|\x1b\[[0-9;]*m)\Z")
_TAIL = re.compile(r"[\w.-]{0,40}", re.ASCII)
_PUBLISHED = re.compile(r"(?i)pub(?:lic|[_-]?key)")
_PLURAL = re.compile(r"(?i:s)(?![a-z])")
_FORM = re.compile(  # how a value is tied to a name; what is not one of these is prose
    r"(?P<pair>\\{0,3}[\"']?,?(?:[\s{-]|\\[nrt]){1,40}\\{0,3}[\"']?(?:value|default)\\{0,3}[\"']?\s{0,3}[:=]\s{0,4})"
    r"|(?P<args>\\{0,3}[\"'`]\s{0,4},\s{0,40}(?=[rbfu]?\\{0,3}[\"'`]))"
    r"|(?P<assign>(?:\\{0,3}[\"'`]|&quot;|\*\*|\]|\)|\[\d*\]|[?!]){0,4}[ \t]{0,10}"
    r"(?:(?::[ \t]*[A-Za-z_&*'][\w\[\]<>|&'.*? ]{0,40}?|(?i:\w{0,12}str(?:ing)?|char|text|&str))(?=[ \t]*=[ \t]*\\?[\"'`]))?"
    r"(?P<op>[ \t]*(?:<-|:=|=>|===?|!==?|=|:(?!:)|%3[ADad]|(?<=[ \t])(?:->|→)(?=[ \t])))(?:\*\*|__|</\w{1,9}>)?[ \t]{0,10})"
    r"|(?P<xml>(?:</\w{1,20}>\s{0,40}<\w{1,20}|\\?[\"']?(?:\s[^<>\n]{0,80})?)>(?=[^<\s]))"
    r"|(?P<table>[ \t*`]{0,6}\|[ \t]{0,20})"
)
_GAP = re.compile(r"[\"'`)*]{0,3}[ \t]+")
_LINK = re.compile(
    r"(?i)(?:\b(?:is|was|to|as|be|are|ist|lautet|est|es)(?:\s+(?:now|still|just|set to|called))?[ \t]*:?|[:=])[ \t]+(?:\*\*)?"
)
_NEXT = re.compile(r"(?:[|>][+-]?)?[ \t]*(?:\r?\n|\\n)(?:[\s>]|\\n|```\w{0,12}){0,40}")  # on to the next line
_CELL = re.compile(r"[ \t`*]*\|")
_ALONE = re.compile(r"[\"'`]{0,3}[ \t]*(?:\r?\n|\\n|\\?\"|$)")


class Name(NamedTuple):
    word: Word
    start: int
    end: int
    extra: int  # it goes on in an unknown way: the value has to be odder


def _glued(text: str, pos: int) -> bool:
    """The character before pos belongs to the same word; an escape sequence does not."""
    before = text[pos - 1 : pos] if pos else ""
    return before.isascii() and before.isalnum() and not _ESCAPED.search(text, max(0, pos - 8), pos)


def _around(pattern: re.Pattern[str], text: str, pos: int, begin: int) -> re.Match[str] | None:
    """The match that begins at or after begin and has pos in it."""
    matches = pattern.finditer(text, begin, pos + 400)
    return next((match for match in matches if match.start() <= pos < match.end()), None)


def _match_key(text: str, pos: int, floor: int) -> tuple[Key, int, int, str] | None:
    """The row of KEYS that fits at pos, where its match begins and ends, and what is to be judged of it."""
    rules = _rules()
    if not _glued(text, pos) and (match := rules.keys.match(text, pos)):
        return KEYS[int(str(match.lastgroup)[1:])], pos, match.end(), match.group((match.lastindex or 0) + 1)
    if inner := rules.inner.match(text, pos):
        index = int(str(inner.lastgroup)[1:])
        if (found := _around(rules.backs[index], text, pos, max(floor, pos - 100))) and not _glued(text, found.start()):
            return KEYS[index], found.start(), found.end(), found.group()
    return None


def _judge_key(text: str, pos: int, floor: int) -> tuple[Finding | None, int]:
    """A secret with a shape at pos, and where to go on looking."""
    fit = _match_key(text, pos, floor)
    if fit is None:
        return None, pos + 1
    row, start, end, body = fit
    if row.rule == "private-key":
        real = re.search(r"[A-Za-z0-9+/]{16}", body) is not None
    else:
        real = len(set(body[:80])) > 5 and not _FAKE.search(body[:80]) and (not row.mixed or oddness(body[:200]) > 2)
    if not real:
        return None, end
    while end < len(text) and text[end] in _NAME_CHARS and text[end] != ".":
        end += 1
    return Finding(row.rule, start, end), end


def _accept(text: str, rule: str, value: Value | None, need: int, short: int = 3) -> Finding | None:
    """The value as a finding, if it is odd enough; a key inside gives it the better name."""
    if value is None or value.end - value.start < short:
        return None
    found = text[value.start : value.end]
    if value.wrapped:
        need = max(3, need)
    elif rule == "password" and found.isdigit() and len(found) > 5:
        need -= 1
    if oddness(found, bare=not value.quoted) < need:
        return None
    key, end = _judge_key(text, value.start, value.start)
    return Finding(key.rule if key else rule, value.start, max(value.end, end if key else 0))


def _judge_place(text: str, pos: int, floor: int) -> Finding | None:
    """What stands in a place for secrets."""
    rules = _rules()
    for place, mark, find in rules.places if rules.stands.match(text, pos) else ():
        if not mark.match(text, pos):
            continue
        match = _around(find, text, pos, max(floor, pos - place.back)) if place.back else find.match(text, pos)
        if match is None:
            continue
        if place.line and not re.search(place.line, text[max(text.rfind("\n", 0, pos), pos - 400, 0) : pos]):
            continue
        start, end = match.span("v")
        if place.need < 0:
            real = (_is_basic if place.need == -1 else _is_jar)(match["v"])
            finding = Finding(place.rule, start, end) if real else None
        else:
            value = Value(start, end, True) if end > start else _read(text, start)
            finding = _accept(text, place.rule, value, place.need)
        if finding:
            return finding
    return None


def _name(text: str, match: re.Match[str]) -> Name | None:
    """The name around a telling word, or None if it tells of something else: tokenizer, max_tokens, password_hint."""
    word = WORDS[int(str(match.lastgroup)[1:])]
    begin, end = match.span()
    start = begin
    while start > max(0, begin - 40) and text[start - 1] in _NAME_CHARS:
        start -= 1
    if start < begin and text[start - 1 : start] == "\\":
        start += 1  # the letter of an escape: \nTOKEN=
    before, tail = text[start:begin], _TAIL.match(text, end)[0].rstrip("-.")  # type: ignore[index]
    if text.endswith(("[redacted:", "::"), max(0, start - 10), start) or _PUBLISHED.search(text, start, end):
        return None
    if tail[:1].isalpha() and not (tail[0].isupper() and text[end - 1].islower()) and not _PLURAL.match(tail):
        return None
    after = [piece.lower() for piece in _PIECES.findall(tail)]
    previous = _PIECES.findall(before) or text[max(0, start - 16) : start].split()[-1:]
    if not _ABOUT.isdisjoint(after) or (word.rule != "password" and previous and previous[-1].lower() in _PUBLIC):
        return None
    return Name(word, start, end + len(tail), 0 if all(map(_NEUTRAL.fullmatch, after)) else 1)


def _judge_word(text: str, match: re.Match[str]) -> Finding | None:
    """What a telling name is tied to."""
    name = _name(text, match)
    if name is None:
        return None
    form = _FORM.match(text, name.end)
    kind, lead = form.lastgroup if form else "", text[max(0, name.start - 6) : name.start]
    if form is None or (kind == "xml" and not lead.endswith(("<", ":", "/", ">", '"', "'"))):
        return _judge_prose(text, name)
    at, word = form.end(), name.word
    fold = _NEXT.match(text, at) if form["op"] == ":" and word.loose < NEVER else None
    value = _read(text, fold.end() if fold else at)
    if value is None or (fold and (value.wrapped or not _ALONE.match(text, value.end))):
        return None
    if kind == "xml" and text[value.end : value.end + 4].lstrip(".,;:)]}>")[:1] != "<":
        return None
    if kind == "table" and not (lead.rstrip(" *`").endswith("|") and _CELL.match(text, value.end)):
        return None
    if lead.endswith(":") and text[name.end : at] == ":":
        return None  # arn:aws:secret:name
    tight = text[name.end : at] == "=" and (text[name.start].isupper() or lead.endswith((";", "&", "?", "-")))
    need = word.tight if kind == "xml" or tight else word.quoted if value.quoted else word.bare
    if kind == "args":
        need = max(word.quoted, 2) if "(" in lead[-4:] or text[name.start] == "-" else NEVER
    elif fold or "==" in (form["op"] or "") or "!=" in (form["op"] or ""):
        need = max(need, 3)
    return _accept(text, word.rule, value, need + name.extra, word.short)


def _judge_prose(text: str, name: Name) -> Finding | None:
    """--name value, NAME value, the name for something is value."""
    word, label = name.word, text[name.start : name.end]
    gap = _GAP.match(text, name.end)
    if gap is None or word.loose == NEVER or text[name.start - 1 : name.start] in ("$", "{"):
        return None
    value, short = _read(text, gap.end()), max(6, word.short)
    flag = label.startswith("-") or ("_" in label and label.isupper())
    need = max(2, word.tight) if flag else max(2, word.quoted) if value and value.quoted else word.loose + 1
    need = NEVER if "_" in label and not flag else need
    if finding := _accept(text, word.rule, value, need + name.extra, short):
        return finding
    for link in _LINK.finditer(text, name.end, name.end + 80):
        between = text[name.end : link.start()]
        if "\n" in between or ". " in between or not _ABOUT.isdisjoint(between.lower().split()[:1]):
            return None
        value = _read(text, link.end())
        need = max(1, word.loose - 1) if value and value.quoted else word.loose
        if finding := _accept(text, word.rule, value, need + name.extra, short):
            return finding
    return None


def _judge(text: str, pos: int, floor: int) -> tuple[Finding | None, int]:
    """The finding that a landmark at pos leads to, if any, and where to look for the next landmark."""
    finding, resume = _judge_key(text, pos, floor)
    if finding or resume > pos + 1:
        return finding, resume
    if not (finding := _judge_place(text, pos, floor)) and (match := _rules().words.match(text, pos)):
        finding = _judge_word(text, match)
    return finding, pos + 1


# ---- The engine ------------------------------------------------------------------------------------------------

_MORE = r"[\w.+/%=~$-]{10}"  # what has to follow the mark of a key before Python looks at it (RE2)
_FOLLOW = (  # and what a telling word; `_FORM`, `_GAP` and `_LINK` say it more exactly
    r"s?(?:(?:[_.\-0-9]|(?-i:[A-Z]))[\w.\-]{0,24})?(?:(?:[\\\"'`*\])\[?!0-9]|&quot;){0,6}[ \t]*"
    r"(?:[:=|]|<-|!=|->|→|%3[AD]|(?:str|char|text|&str)\w*[ \t]+=)|[\\\"'`]{1,4}\s*,"
    r"|[\\\"'`]{0,4},?(?:[\s{-]|\\[nrt])+[\\\"']{0,4}(?:value|default)"
    r"|(?:</\w+>\s*<\w+|[\\\"']{0,2}(?:\s\w+=[\"'][^\"'<>\n]*[\"'])?)>|[\"'`)*]{0,3}[ \t]+(?:[\"'`(]"
    r"|(?:is|was|to|as|be|are|for|of|on|in|at|from|ist|lautet|est|es)\s|\S{0,32}(?:[0-9@$!#%&*^]|\S(?-i:[A-Z]))))"
)


class Rules(NamedTuple):
    landmark: Any  # RE2: all marks
    keys: re.Pattern[str]  # all KEYS that begin with their mark, a group each
    inner: re.Pattern[str]  # the others, from their mark on
    backs: dict[int, re.Pattern[str]]  # and from their beginning
    stands: re.Pattern[str]  # the marks of PLACES
    places: list[tuple[Place, re.Pattern[str], re.Pattern[str]]]
    words: re.Pattern[str]


@functools.cache
def _rules() -> Rules:
    """The tables, compiled at the first use: importing this module stays cheap."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are bytes, whatever they encode
    options.never_capture, options.log_errors, options.max_mem = True, False, 64 << 20
    plain = "|".join(row.mark for row in KEYS if not row.back and " " not in row.mark)
    marks = [row.mark for row in KEYS if row.back or " " in row.mark] + [row.mark for row in PLACES]
    marks += [f"(?:{plain}){_MORE}", f"(?i:(?:{'|'.join(word.words for word in WORDS)}){_FOLLOW})"]

    def compiled(*patterns: str) -> re.Pattern[str]:
        return re.compile("|".join(patterns), re.ASCII)

    return Rules(
        landmark=re2.compile("|".join(marks).encode(), options),
        keys=compiled(*(f"(?P<k{i}>{row.mark}({row.body}))" for i, row in enumerate(KEYS) if not row.back)),
        inner=compiled(*(f"(?P<k{i}>{row.mark}{row.body})" for i, row in enumerate(KEYS) if row.back)),
        backs={i: compiled(row.back + row.mark + row.body) for i, row in enumerate(KEYS) if row.back},
        stands=compiled(*(row.mark for row in PLACES)),
        places=[(row, compiled(row.mark), compiled(row.find)) for row in PLACES],
        words=compiled(*(f"(?P<w{i}>(?i:{word.words}))" for i, word in enumerate(WORDS))),
    )


def scan(text: str) -> list[Finding]:
    """The secrets in a text, sorted, none overlapping another."""
    data = text.encode("utf-8", "surrogatepass")
    search = _rules().landmark.search
    hit = search(data)
    if hit is None:
        return []
    narrow = len(data) == len(text)  # ASCII: a byte is a character
    found: list[Finding] = []
    byte = char = 0
    while hit is not None:
        start = hit.start()
        while data[start] & 0xC0 == 0x80:
            start -= 1  # a mark may begin with any byte: back to where its character begins
        char += start - byte if narrow else len(data[byte:start].decode("utf-8", "surrogatepass"))
        finding, resume = _judge(text, char, found[-1].end if found else 0)
        if finding:
            found.append(finding)
        byte = start + (resume - char if narrow else len(text[char:resume].encode("utf-8", "surrogatepass")))
        char = resume
        hit = search(data, byte)
    return _merged(found)


def _merged(found: list[Finding]) -> list[Finding]:
    """Sorted, and joined where they overlap."""
    merged: list[Finding] = []
    for finding in sorted(found, key=lambda one: (one.start, -one.end)):
        if merged and finding.start < merged[-1].end:
            last = merged.pop()
            finding = Finding(last.rule, last.start, max(last.end, finding.end))
        merged.append(finding)
    return merged


def redact(text: str) -> str:
    """The text with a marker in place of every secret; the same object if there is none."""
    while found := scan(text):  # ends: every pass turns text into markers, and no finding lies in a marker
        parts, at = [], 0
        for finding in found:
            parts += [text[at : finding.start], f"[redacted:{finding.rule}]"]
            at = finding.end
        text = "".join(parts) + text[at:]
    return text
