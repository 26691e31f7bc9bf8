"""Secrets out of text, before anything of a transcript is stored or sent.

`scan` says where secrets stand, `redact` puts `[redacted:<rule>]` in their place. Three tables hold every rule: KEYS
(secrets that have a shape, found bare), PLACES (a secret is what stands there: the password of a URL, a header, a flag)
and WORDS (names that tell; a value beside one is judged by how odd it looks).

It parses no language, asks no provider whether a key is alive, and lets a secret without a shape pass when nothing
beside it tells. One RE2 pass over the bytes finds the landmarks where a rule could apply; Python looks only there, at a
bounded stretch of text, so that the time stays linear whatever the input.

Invariant: scan(redact(text)) is empty for every text, hence redact is idempotent; no text raises.
"""

import binascii
import bisect
import functools
import hashlib
import itertools
import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

VERSION = "redact_v1"
NEVER = 9  # more than any value reaches


@dataclass(frozen=True, slots=True)
class Finding:
    """One secret: text[start:end] in characters, and the rule that found it."""

    rule: str
    start: int
    end: int


class Key(NamedTuple):
    """A secret with a shape: `mark` (RE2 and re) begins it and `body` follows; with `back` it is inside."""

    rule: str
    mark: str
    body: str  # bounded wherever it can fail after a long run, so that hostile input stays linear
    mixed: bool = False  # the mark proves little: the body must look random, too
    back: str = ""  # what stands before the mark


class Place(NamedTuple):
    """A secret is group v of `find`, which matches at `mark`; an empty v: the value that begins there."""

    rule: str
    need: int  # the least `oddness` of the value; -1 for base64 of user:password
    mark: str
    find: str
    line: str = ""  # what has to stand before it on the same line
    lead: str = ""  # with it, `find` begins before the mark, at one of these


class Word(NamedTuple):
    """A name that tells. The numbers are the least `oddness` of a value, by how it is tied to the name."""

    rule: str
    words: str
    quoted: int  # name = "value"
    tight: int  # NAME=value, --name value, <name>value</name>
    bare: int  # name: value
    loose: int  # the name is value
    short: int  # the least length of a value


# ---- The rules -------------------------------------------------------------------------------------------------------

# fmt: off
# Rule, prefix, rule, prefix ...: keys that go on with 16 or more of A-Z a-z 0-9 _ -, and in _BASE64 of + / = as well.
_PREFIXED = r"""
    anthropic sk-ant-  openrouter sk-or-  openai (?:(?:sk|sess)-|ek_[0-9a-f]{8})
    google (?:AIza|GOCSPX-|1//0|4/0A|AQ\.Ab|ya29\.)
    github (?:gh[pousr]_|github_pat_)  gitlab (?:gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-|GR1348941)
    npm npm_[A-Za-z0-9]{16}  pypi pypi-[\w-]{20}  huggingface (?:hf|api_org)_  digitalocean do[por]_v1_
    twilio (?:AC|SK)[0-9a-f]{8}  mailgun key-[0-9a-f]{8}  sendgrid SG\.[\w-]{16,32}\.
    databricks (?:dapi|dose|dkea)[0-9a-f]{8}  linear lin_[a-z]+_  vault hv[sbr]\.
    doppler dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]+\.)?  notion (?:secret|ntn)_[A-Za-z0-9]{20}  figma fig[dour]_
    shopify shp(?:at|ca|pa|ss|ua|tka)_  square sq0[a-z]{3}-  planetscale pscale_[a-z_]{1,20}_  postman PMA[KT]-
    xai xai-  groq gsk_  newrelic NR(?:AK|II|IQ|RA|JS|SP)-  replicate r8_[A-Za-z0-9]{12}
    perplexity pplx-[A-Za-z0-9]{16}  supabase sb(?:p|_secret)_  netlify nf[pcoub]_[A-Za-z0-9]{12}
    vercel (?:vc[paikrb]_|vercel_blob_rw_)  docker dckr_[po]at_
    ruby-gems rubygems_  circleci CCI(?:PAT|PRJ)_  buildkite bk(?:ua|ct|at|pt)_  pulumi pul-[0-9a-f]{20}  heroku HRKU-
    tavily tvly-  tailscale tskey-[a-z]{2,12}-  brevo x(?:key|smtp)sib-  resend re_[A-Za-z0-9]{8}_
    langsmith ls(?:v2_[a-z]{2}_|__)  pinecone pc(?:sk|l)_  nvidia nvapi-
    cloudflare (?:cf(?:ut|at|k|ast)_|v1\.0-[0-9a-f]{24}-)  airtable pat[A-Za-z0-9]{14}\.[0-9a-f]{20}
    dropbox sl\.(?:u\.)?[\w-]{36}  cerebras csk-  together tgp_v1_  fireworks fw_[A-Za-z0-9]{4}
    elevenlabs sk_[0-9a-f]{8}  firecrawl fc-[0-9a-f]{8}  jina jina_  voyage pa-[\w-]{20}  e2b e2b_[0-9a-f]{16}
    wandb wandb_v1_  render rnd_[A-Za-z0-9]{4}  posthog ph[xs]_  neon n(?:api|pg)_  1password (?:ops_ey|A3-[0-9A-Z]{6}-)
    sonar sq[upa]_[0-9a-f]{16}  sourcegraph sg[pd]_[0-9a-f]{16}  contentful CFPAT-
    dynatrace dt0[a-z][0-9]{2}\.[0-9A-Z]{24}\.  launchdarkly (?:sdk|mob|api)-[0-9a-f]{8}-  alibaba LTAI[A-Za-z0-9]{4}
    tencent AKID[A-Za-z0-9]{4}  facebook EAA[A-Za-z0-9][\w-]{36}  age AGE-SECRET-KEY-(?:PQ-)?1
    wallet [xyz]prv[0-9A-Za-z]{60}  plaid access-(?:sandbox|development|production)-
    paypal access_token\$[a-z]+\$[0-9a-z]{16}\$  jfrog AKCp[A-Za-z0-9]{40}  typeform tfp_[\w-]{16}
    easypost EZ[AT]K[A-Za-z0-9]{30}  yandex (?:AQVN|y[0-3]_)[\w-]{20}  prefect pn[ub]_[A-Za-z0-9]{12}
    shippo shippo_(?:live|test)_  frameio fio-u-  readme rdme_  infracost ico-[A-Za-z0-9]{16}
    crates-io cio[A-Za-z0-9]{16}  nuget oy2[a-z0-9]{27}  apify apify_api_  browserbase bb_live_  cursor key_[0-9a-f]{32}
    daytona dtn_[0-9a-f]{16}  inngest signkey-[a-z]+-[0-9a-f]{16}  hubspot pat-[a-z]{2}[0-9]-  razorpay rzp_[lt]
    expo expo_  flutterwave FLWSECK-[0-9a-f]{16}  lob live_[0-9a-f]{19}
"""
_BASE64 = r"""
    stripe (?:[sr]k_(?:live|test|prod)|whsec)_  atlassian AT(?:ATT|CTT|BB|TA|SP)[A-Za-z0-9]{4}  sentry sntry[su]_
    grafana gl(?:sa|c)_  fly (?:FlyV1\x20)?f(?:m[12][ar]?|o1)_  aws (?:ABSK|FwoGZXIvYXdz|IQoJb3JpZ2lu)[\w+/%]{40}
    slack (?:xox[abcdeoprs][.-]|xapp-)  confluent cflt[\w+/]{4}
"""
_LINES = (  # of base64; between two of them a gutter, a line break in any form, a note that some were left out
    r"(?:(?:(?:[\s\"'+>|#*,;()→0-9]|\\+[nrt]){0,40}|[^\"]{1,60}?(?<![A-Za-z0-9+/])(?=[A-Za-z0-9+/]{40}))"
    r"[A-Za-z0-9+/=]{16,})+"
    r"(?:(?:\s|\\+[nr]){1,8}(?=[A-Za-z]*(?:[0-9+/=]|\Z))[A-Za-z0-9+/]{1,15}={0,2})?"
)
_PEM = (  # up to the END line; without one, the lines of base64 that follow
    r"(?: BLOCK)? ?-----?(?:(?:(?!----[- ]?BEGIN)[\s\S]){16,16000}?----[- ]?END [A-Z0-9 ]{0,40}-{0,5}"
    r"|(?:(?:[ \t\r]*+(?:\n|\\++[nr]))++[ \t>|]*+[\w-]{1,30}+: [^\n\\]{0,200}+){0,6}+" + _LINES + ")"
)  # each of the headers begins a line
KEYS = (
    *(Key(rule, mark, r"[\w-]{16,400}", True) for rule, mark in zip(*[iter(_PREFIXED.split())] * 2, strict=True)),
    *(Key(rule, mark, r"[\w+/=%,.-]{16,400}", True) for rule, mark in zip(*[iter(_BASE64.split())] * 2, strict=True)),
    Key("private-key", r"----[- ]?BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY", _PEM),
    Key("private-key", r"----[- ]?END [A-Z0-9 ]{0,30}PRIVATE KEY", r"(?: BLOCK)? ?-{1,5}"),
    Key("private-key", r"(?:b3BlbnNzaC1rZXktdjE|MII[A-Za-z0-9+/]{3}IBA(?:DANBgkqhkiG9w0BAQEFAASC|AKCA))", _LINES),
    Key("private-key", r"LS0tLS1CRUdJTiB(?:QUklW|SU0E|FQy|PUEVO|FTkNS|EU0E)", _LINES),  # base64 of BEGIN
    Key("private-key", r"Private-Lines: [0-9]+", r"(?:\s|\\[nr])+(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])*)+"),
    Key("aws", r"A(?:KIA|SIA|BIA|CCA)", r"[A-Z0-9]{16}(?![A-Z0-9])(?:[\s\"',;:|=/]{1,12}[\w/+]{40}(?![\w/+=]))?"),
    Key("jwt", r"eyJ[\w-]{6}", r"[\w-]{2,1500}\.(?:[\s\\\"'+]{1,40}(?=eyJ))?[\w-]{6,}"
        r"(?:\.(?:[\s\\\"'+]{1,40}(?=[\w-]{24}))?[\w-]*){0,3}"),
    Key("crypt", r"\$(?:2[abxy]|[156y]|apr1|argon2(?:id?|d))\$", r"[\w./$=,+-]{26,300}", True),
    Key("azure", r"[0-9]Q~", r"[\w.~-]{30,40}", back=r"[\w.~-]{3}"),
    Key("azure", r"(?:AZDO|\+AMC|\+ASt|AzCa|APIM|AzFu|AzSe|ACDb)", r"[\w+/]{4,8}={0,2}", True, r"[\w+/]{32,76}"),
    Key("token", r"_(?:live|prod|pat|oat|sk|tkn)_[\w-]{8}", r"[\w-]{10,}", True,
        r"(?!p[bk]_)[a-z][a-z0-9_]{1,14}"),
    Key("stripe", r"_secret_", r"[A-Za-z0-9]{16,}", back=r"(?:pi|seti|cs|src)_[A-Za-z0-9]{14,34}"),
    Key("mailgun", r"-[0-9a-f]{8}-", r"[0-9a-f]{8}(?![0-9A-Za-z-])", back=r"[0-9a-f]{32}"),
    Key("mailchimp", r"-us[0-9]", r"[0-9]?(?![0-9A-Za-z])", back=r"[0-9a-f]{32}"),
    Key("newrelic", r"NRAL", r"(?!\w)", back=r"[0-9a-fF]{32,40}"),
    Key("telegram", r"[0-9]:AA[\w-]{4}", r"[\w-]{28,}", back=r"(?:bot)?[0-9]{7,11}"),
    Key("discord", r"\.[\w-]{6}\.[\w-]{12}", r"[\w-]{15,}", True, r"[MNO][\w-]{22,30}"),
    Key("terraform", r"\.atlasv1\.", r"[\w=-]{50,}", back=r"[A-Za-z0-9]{14}"),
)

_TO = r"\\{0,3}[\"'`]?\]?\s{0,4}(?::|=>|=|,(?=\s{0,4}\\?[\"'`]))\s{0,4}"  # between the name of a header and its value
_PAIR = _TO + r"\\{0,3}[\"'`]?[\w.%-]{1,64}="  # the same, up to the value of the first cookie
_JAR = r"(?P<v>(?=[^\n\"'`\\$<{]{0,300}?(?:\d|[a-z][A-Z]))[^\n\"'`\\]{12,4000})"  # cookies that carry something
_HOST = r"(?:\[[0-9a-fA-F:]{2,40}\]|[\w.${}%-]{1,253})(?::[\w${}]{1,30})?(?:[/?#\s\"'`,;()<>\\\]|]|$)"
_STDIN = r"(?:--password-stdin|--with-token|sudo -S|chpasswd|passwd --stdin)"
_WORD = r"(?(q)[^\"'\n\\]{3,200}|[^\s\"'`|\\]{3,200})"  # up to the quote that group q opened, or white space
_UNSET = r"(?:\$\{\w{1,80}:?[-=]){1,8}"  # of ${NAME:-value}, which is its value where the name is not set
_URL, _USER = r":\\?/\\?/", r"(?<![\w.%+-])[\w.%+-]{1,64}:"
_LOGIN = (  # and a user; the password follows
    r"(?i:cred(?:ential)?s|log-?in|log in|account|zugangsdaten|identifiants|user/pass(?:word)?)"
    r"(?i: for [\w-]{1,30}| details)?(?i: ?:| is:?| are:?| with:?| as:?| ist| sind) {1,4}"
    r"[\"'`]?[\w.@+-]{1,40}[\"'`]?(?: ?/ ?|:| with | mit | and | und )[\"'`]?"
)
_TYPED = r"(?i:passw\w{1,3}|pwd)[\"'\]]{1,4}\)\.(?:send_keys|type|fill)\("  # into a field
_CODE_OF = r"(?i:(?:app|otp|[2m]fa|setup|recovery|backup)[ _-](?:password|seed|secret|key|code))"
_CODES = r"(?:\w{4,6}(?:-\w{4,6}){1,3}|\d{4} \d{4}|(?=[A-Za-z]{0,9}\d)[0-9A-Za-z]{6,12})(?![\w.-])"  # of a list
_ITEM = r"(?:[\s,;|*•\"'\[-]|\\[nr]|\d{1,2}[.)]\s){1,12}"
_ARGS = r"\s(?:[^\n|;]{0,160}?\s)?"
_COMMANDS = {  # and what stands between them and a password
    "redis-cli": _ARGS + "-a",
    "(?:sqlcmd|zip)": _ARGS + "-P",
    "(?:sshpass|mongo(?:sh|dump|restore)?|(?:docker|podman|registry|az) login|user(?:add|mod))": _ARGS + "-p",
    "(?:ldap(?:search|add|modify|passwd|delete|whoami)|add-(?:generic|internet)-password)": _ARGS + "-w",
    "openssl enc": _ARGS + "-k",
    "gh secret set": _ARGS + "(?:-b|--body)",
    "7za? [a-z]": _ARGS + r"-p(?=\S)",
    "htpasswd": r" -[a-zA-Z]{0,4}b[a-zA-Z]{0,4} \S{1,80} \S{1,80}\s",
    "net use": r" \S{1,80} \\\S{1,80}(?: /user:\S{1,80})?\s",
    "encrypt_string": r"(?=\s[\"'])",
    "snmp-server community": r"\s",
    "rabbitmqctl (?:add_user|change_password)": r" \S{1,80}\s",
}
_AT = r"[^\s/\"'`{(\[<]@(?:[A-Za-z_\[${%]|[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9])"

PLACES = (
    Place("url-token", 3, _AT, r":\\?/\\?/(?P<v>[\w.~%+=-]{16,200}(?::[^\s@/:\"'<>]{0,64})?)@", lead=_URL),
    Place("url-password", 1, _AT, r":\\?/\\?/[^\s/?#@:\"'<>`\\]{0,64}:(?!\d{1,5}(?:[/?#]|$))(?P<u>" + _UNSET + r")?"
          r"(?P<v>[^\s\"'<>`\\]{1,200}?)(?(u)\}|)@(?=" + _HOST + r")"
          r"(?![\w-]+[/#?][^\s\"'<>@=&]*@[\w-]+[.:])", lead=_URL),
    Place("url-password", 1, _AT, r"[\w.%+-]{1,64}:(?P<v>[^\s\"'<>`]{1,100})@(?:tcp|udp|unix)\(", lead=_USER),
    Place("url-password", 2, _AT, r"(?<![\w/.-])[\w.%+-]{1,64}:(?P<v>[^\s\"'<>`/\\:@][^\s\"'<>`/]{4,100})"
          r"@(?:localhost|\d+\.\d+\.\d+\.\d+|[\w-]+\.[\w.-]+):\d", lead=_USER),
    Place("authorization", 2, r"(?i:authorization)[\"'\\`\]\s]{0,8}[:=,]", r"(?<![a-z])\w+" + _TO + "(?P<v>)"),
    Place("authorization", 3, r"(?i:bearer)(?:\s|%20)", r"\w+(?:\s{1,4}|%20)(?P<v>)"),
    Place("authorization", -1, r"(?i:basic)[ %][A-Za-z0-9+/]{6}", r"\w+(?: |%20)(?P<v>[A-Za-z0-9+/]{6,999}={0,2})"),
    Place("cookie", 3, r"(?i:set-cookie)", r"[\w-]{1,30}" + _PAIR + r"(?P<v>[^;\s\"'`\\]{6,4000})"),
    Place("cookie", 0, r"(?i:cookie)[\"'`\\\]]{0,4}\s*[:=,]", r"(?<!-)\w+" + _PAIR + _JAR),
    Place("cookie", 0, r"-(?:b|-cookie)[ =]", r"[-\w]+[ =]+[\"']?[\w.%-]{1,64}=" + _JAR, "curl"),
    Place("cookie", 3, r"(?:PHPSESSID|JSESSIONID|connect\.sid)=", r"[\w.]+=(?P<v>[^;\s\"'`\\]{8,400})"),
    Place("password", 1, r"\s-(?:[uUa]|-(?:proxy-)?user)[ =\"'\w]", r"\s(?:-[uUa]|--[a-z-]+)[ =]{0,3}(?P<q>\\?[\"'])?"
          r"[^\s:\"'\\]{1,64}:(?P<v>" + _WORD + r")", r"\b(?:curl|https?|wget|xh)\b"),
    Place("password", 1, r"\s-p[^\s=-]", r"\s-p(?P<v>)", r"\b(?:mysql|mariadb)"),
    Place("password", 1, r"(?:" + "|".join(_COMMANDS) + r")\s",
          rf"(?:{'|'.join(name + tail for name, tail in _COMMANDS.items())})(?:=|\s*)(?P<v>)(?=[^\s/-])"),
    Place("secret", 3, r"(?:vault login |--with-token <<<)", r"(?:vault login|--with-token <<<)\s{1,4}(?P<v>)(?=[^-])"),
    Place("password", 1, r"(?:sqlplus |oracle:thin:)", r"(?:sqlplus |\w+:\w+:)\w{1,30}/(?P<v>[^\s@\"'/]{3,60})@"),
    Place("password", 2, r"-U [\"']?[\w.\\]+%", r"-U [\"']?[\w.\\-]{1,64}%(?P<v>)", r"(?:^|\s)(?:smb|rpc|net\b)"),
    Place("password", 1, r"[\"']-u[\"'], ?[\"']",
          r"\W-u\W{3,4}[^\s:\"']{1,64}:(?P<v>[^\"'\n]{3,200})", r"\b(?:curl|https?|wget)\b"),
    Place("password", 1, r"[\"']-p[^\s=\"'-]", r"\W-p(?P<v>[^\"'\n]{3,200})[\"']", r"\b(?:mysql|mariadb)"),
    Place("password", 1, _STDIN, r"(?:echo|printf)\s+(?:-n\s+)?(?P<q>\\?[\"'])?(?P<v>" + _WORD + r")\\?[\"']?"
          r"\s*\|[^|\n]{0,80}?" + _STDIN, lead=r"(?:echo|printf)\s"),
    Place("password", 1, r"(?:-pass(?:in|out)?\s[\"']?pass:|ConvertTo-SecureString\s|IDENTIFIED BY\s|identified by\s)",
          r"(?:-pass\w*\s[\"']?pass:|\w+-\w+\s+(?:-String\s+)?(?=[\"'])|\w+ \w+\s+(?=\\?')"
          r"|IDENTIFIED BY\s+(?=\\?\"))(?P<v>)"),
    Place("password", 1, r"machine\s", r"\w+\s+\S{1,80}\s+login\s+\S{1,80}\s+password\s+(?P<v>\S{3,200})"),
    Place("password", 1, r":(?:[56]4[0-9]{2}|\*):[\w.*-]{1,64}:[\w.@*-]{1,64}:[^\s:]",  # of a .pgpass file
          r":[\d*]+(?::[\w.@*-]{1,64}){2}:(?P<v>(?:\\[:\\]|[^\s\"'`\\]){3,200})", r"(?:^|[\s\"'`])[\w.*/-]{1,200}$"),
    Place("password", 1, r"WIFI:[A-Z]{1,2}:", r"WIFI:(?:[^\n]{0,200}?;)?P:(?P<v>(?:\\.|[^\n;\\]){3,200}?);"),
    Place("password", 2, r"(?i:pass|pw)[ \t]{0,4}[:=]",
          r"(?i)(?:login|user(?:name)?|e-?mail)[ \t]{0,4}[:=][ \t]{0,4}[^\s:=]{1,80}[\s,;/|]{1,8}"
          r"(?:pass|pw)[ \t]{0,4}[:=][ \t]{0,4}(?P<v>)", lead=r"(?i)\b(?:login|user|e-?mail)"),
    Place("password", 3, r"(?i:, pass )\S", r", \w+ (?P<v>)", r"(?i)\b(?:user|login)"),
    Place("password", 2, r"(?i:auth|login|authenticate|credential)\s*=?\s*\(\s*\\?[\"']",
          r"\w+\s{0,3}=?\s{0,3}\(\s{0,40}\\?[\"'][^\"'\n]{0,80}[\"']\s{0,4},\s{0,40}(?P<v>)(?=\\?[\"'])"),
    Place("password", 1, _TYPED, _TYPED + "(?P<v>)"),
    Place("password", 2, r"(?i:passw\w{1,3}|pass|pw)[)\]]? = [\[(]?[\"']",
          r"\w+[)\]]? = [\[(]?[\"'][^\"'\n]{0,60}[\"'], {0,2}(?P<v>)(?=[\"'])", r"\w, ?$"),
    Place("secret", 3,
          r"(?:jwt\.(?:sign|encode|verify|decode)|(?:hmac|AES)\.new|createHmac|Fernet|WiFi\.begin|[a-z]Password|getConnection)\(",
          r"(?:(?:Fernet|\w+Password|hmac\.new|AES\.new)\(|getConnection\([^()\n]{1,120}?,\s?[\"'][^\"'\n]{0,60}[\"'],|[\w.]+\([^()\n]{1,80}?,)\s{0,8}(?P<v>)(?=b?[\"'])"),
    Place("url-query", 4, r"[?&](?:amp;)?(?i:key|k|sig|auth|jwt|code|(?:x-(?:amz|goog)-)?signature)=",
          r"[?&](?:amp;)?[\w-]+=(?P<v>[^\s&\"'<>`#\\?]{12,2000})"),
    Place("seed-phrase", 0, r"(?i:mnemonic|(?:seed|recovery|backup|secret)[ _-]phrase)",
          r"\w{1,30}(?:[ -]\w{1,30})?[^\w\n]{0,12}(?:is\W{1,4})?(?P<v>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"),
    Place("webhook", 3, r"(?:hooks\.(?:slack|zapier|slack-gov)|discord(?:app)?|(?:webhook|outlook)\.office)\.com/",
          r"[\w.-]+/(?:(?:api|hooks|v\d+)/){0,2}(?:\w{5,8}s|webhook(?:b2)?|catch)/(?P<v>[\w/@+-]{12,})"),
    Place("webhook", 4, r"(?:/bot/v2/hook|/webhook|/with/key|\.infura\.io/v3|\.alchemy\.com/v2)/[\w-]{20}",
          r"[/\w.]+/(?P<v>[\w-]{20,})"),
    Place("private-key", 4, r"(?:\"d\\?\"\s?:\s?\\?\"|accounts:\s?\[\s?[\"'])[\w+/-]{20}",
          r"(?:\"d\\?\"\s?:\s?\\?\"|accounts\W+)(?P<v>[\w+/=-]{40,1000})"),
    Place("secret", 3, r"(?i:(?:(?:as|is) (?:the|my|your|our|a)|as|als(?: das| dein)?) (?:[\w-]+ )?"
          r"(?:passwor[dt]|kennwort|passphrase|api key|token|secret))",
          r"[\"'`]?(?P<v>[^\s\"'`]{8,90})[\"'`]?,? (?:as|is|als) ", lead=r"(?<!\S)\S{8,93} \S\Z"),
    Place("password", 3, _LOGIN + r"\S",
          _LOGIN + r"(?P<v>(?=\S{0,40}[!#$%&*?+^~@])[^\s\"'`/=()<>\[\]{}]{6,90})"),
    Place("password", 3, r"(?i:pwd|password)=\{", r"\w+=\{(?P<v>[^\s{}]{3,100})\}"),
    Place("password", 0, _CODE_OF,
          r"\w+[ _-]\w+(?: is)?:? {1,4}[\"'`]?(?P<v>(?i:[a-z0-9]{4,6}(?:[ -][a-z0-9]{4,6}){3,15}))\b(?! [a-z])"),
    Place("recovery-code", 0, _CODE_OF,
          rf"\w+[ _-]\w+[^\n]{{0,60}}?(?:[\n:]|\\n){_ITEM}(?P<v>{_CODES}(?:{_ITEM}{_CODES}){{2,40}})"),
)
_OF = (  # a key of what; any other key is the weaker word further down
    r"(?:api|access|auth|private|secret|sign(?:ing|ature)?|(?:en|de)crypt(?:ion)?|master|service|account"
    r"|deploy|admin|app|licen[cs]e|webhook|client|shared|subscription|project|consumer|hmac|jwt|ssh|root|write|unseal|enc"
    r"|recovery|backup)"
)
WORDS = (
    Word("password", r"pass[ _-]?(?:word|phrase|code)|passw(?:d|rd|ort)|pwd|pswd|masterauth"
         r"|(?:db|ssh|smtp|root|user|admin|key|store|auth|require)[_-]?(?:pass|pw)|kennwort|contrase(?:n|ñ)a|senha"
         r"|wachtwoord|mot de passe|lösenord(?:et)?|hasło|adgangskode|kodeord|passord|heslo|salasana|jelszó|(?:Ş|ş)ifre"
         r"|palavra-passe|mật khẩu|kata sandi|(?:П|п)ароль|κωδικός|סיסמה|كلمة المرور|密码|密碼|パスワード"
         r"|暗証番号|비밀번호",
         1, 1, 2, 2, short=4),
    Word("secret", _OF + r"[ _.-]?key|secret|token|credential|recovery[ _-]code|(?:my|our|this) key"
         r"|geheimnis|api[ -]?schlüssel|clé (?:d['’])?api|密钥|密鑰|令牌|トークン|apiキー",
         3, 2, 3, 3, short=8),
    Word("secret", r"(?:^|[^A-Za-z0-9])(?:auth|jwt|creds?|otp|pepper|totp[_-]seed)|(?-i:_PAT)",
         3, 3, 4, NEVER, short=12),
    Word("password", r"(?:^|[^A-Za-z0-9])(?:pw|mdp|clave|parola|wlan-schlüssel)", 2, 2, 2, 2, short=6),
    Word("password", r"(?:^|[^A-Za-z0-9])(?:pass|psk)|(?-i:[a-z]Pass)", 2, 2, 3, NEVER, short=6),
    Word("key", r"key|salt", 4, 4, 4, NEVER, short=16),
)
_ABOUT = frozenset("""
    alphabet arn at auth based cache chars charset class config count digest dir encoder endpoint entry env error errors
    expires expiry field fields file filename files fingerprint form format hash header headers hint html id ids index
    info input js json kind label len length limit list manager map max message min model msg name names object page
    param params parser path pattern per policy prefix prompt protected provider py ref regex required reset rule rules
    schema scope scopes script set size source state status stream strength suffix tests ts ttl txt type types uri url
    urls usage users validator version with yaml yml
""".split())  # a name that goes on like this is about a secret, not one: token_count, password_hint
_PUBLIC = frozenset("""
    cache cached cancellation continuation cursor cycle dedup dedupe design end foreign group hash idempotency input
    item lookup map mask max min next num object output page pagination partition prefix primary prompt resume row s3
    sort start starting stop sync total unique
""".split())  # a name that begins like this is no secret: next_token, primary_key
_NEUTRAL = frozenset("""
    admin again aws b base confirm confirmation current db default dev gitlab github hex live main new old plain primary
    prod production raw repeat root s secondary stage staging test v val value verify
""".split())  # a name may go on like this and say no more
_PLAIN = frozenset("""
    any auth basic bearer bool boolean bytes change char click correct default digest disabled email empty enabled
    encrypted enter expired false field forgot hashed here hidden incorrect input integer invalid jwt login masked
    missing name never none null number oauth object optional pass passphrase passwd password passwort plain private
    protected public pwd readonly required reset revoked same secret see static str string text that this token true
    undefined unknown use user username value void wrong
""".split())  # values that are none
_PROSE = frozenset("a an and are at be by for from if in is it must no not of on or please the this to with".split())
_BIGRAMS = frozenset("""
    er in te on re ti at es st en le or nt co ar al de ra se io ed ng li ri an ro it ta me tr et ma ic ne ce as is ec
    ac ns si pe ve nd ct di la to ca pr ea lo pa el ex ss ge na ch un fi ou rs ol th am nc il po he om ut ur rt ll mp
    pl ts no em id im ty ap ad od ni ul ig mi so ot ha ke ab su ie rr oc ck mo bl da ia us va sp op ag ep ai ba ho fo
    hi cl sc gr sh ef tt oo os ci pt iv rm ly vi do um ee ir tu qu yp ow lt cr be ue cu pi up ip lu ry if wa ls fa eg
    nf iz bo ev pp bi sa ub ru rc ay ib fe ff ze rd bu gi au rn wi ga og rg du ov ds ua
""".split())  # the most common pairs of letters, in English and in the names of programs
# fmt: on

# ---- What a value looks like -----------------------------------------------------------------------------------------

_FAKE = (  # stands for a secret: placeholders, regular expressions
    r"\[redacted|(?<![A-Za-z0-9])(?:your|Your|YOUR)|example|EXAMPLE|placeholder|PLACEHOLDER|redacted|REDACTED|dummy|DUMMY"
    r"|change.?me|CHANGE.?ME|replace.?(?:me|with|this)|REPLACE.?(?:ME|WITH|THIS)|[_-](?:here|HERE)$"
    r"|abcdefghijk|ABCDEFGHIJK|^--[a-z]|^![A-Za-z]{2,12}$|^:[a-z_]\w*$|^&(?:lt|#)|^<[\w\s:-]*>?$"
    r"|^%(?:[sd]|[a-z_]\w*%)$|^\[[\w\s-]*\]?$|^\{(?![a-z_]\w*\})|\(\?|\[\^|\[0-9|\[[aA]-|\[\\x|\\[sSwWdD]"
    r"|^(?:\\x[0-9a-f]{2})+$|^[\w\s./:=-]*%[sd](?![\w%])|[a-z]\|[a-z]+\||\]\|\w"
)
_SIGNS = "\u0e00-\u0e7f\u2e80-\ud7ff\uf900-\uffef"  # of scripts that put no space between words: never a password's
_GAPS = (  # stands for a part of one: expansions, templates, what was left out
    r"[$#]\{[^{}]*\}?|\{\{[^{}]*\}{0,2}|[$%]\([^()]*\)?[sd]?|\{[a-z_][\w.\[\]()]*(?:[:!][\w.<>^,]*)?\}"
    r"|\(\)|\.{3,}|…|\*{3,}|•|x{5,}|X{5,}|(.)\1{6,}|[" + _SIGNS + "]+"
)
_ID = (  # has digits and is no secret: versions, dates, sizes, digests, addresses, ids of providers
    r"(?i)(?-i:[A-Z]{1,5}-?\d+(?:[.-]\d+)+$|[A-Z]{2,6}-\d+$)|v?\d+\.\d[\w.+-]{0,40}$|\d{4}-\d\d-\d\d|\d\d?:\d\d|data:|ssh-|ecdsa-"
    r"|(?:sha\d+|md5)[-:]|[a-z][a-z0-9+.-]*://|#[0-9a-f]{3,8}$|0x[0-9a-f]{1,16}(?:u?ll?)?$|[\w.+-]+@[\w.-]+\.[a-z]{2,}$"
    r"|(?=\d+\D)(?:\d+(?:\.\d+)?(?:px|r?em|[kmgt]i?b?|ms|s|h|d|min|x|%)?[/x~+-]?){1,3}$|(?:msg|toolu|srvtoolu|req|call"
    r"|chatcmpl|resp|run|thread|asst|file|price|cus|evt|sub|prod|acct|pk_test|pk_live|pi|ch)[_-]\w{10,}$"
    r"|arn:aws|(?:us|eu|ap|sa|ca|me|af|il)-(?:gov-)?[a-z]+-\d[a-f]?$|[a-z]+(?:-[a-z]+)*-v?\d+(?:\.\d+)+$|\$\d+\.\d+(?:/\w+)?$"
    r"|[a-z][a-z0-9./-]*:\d+(?:\.\d+)+(?:-\w+)?$|(?-i:[A-Z][A-Z0-9]+(?:_[A-Z]{2,})+$)|argon2\w{0,2}\$[mtpv=\d,$]*$"
)
_TECH = (  # digits that belong to a term
    r"(?i)sha-?\d+|base-?(?:16|32|58|64)|utf-?(?:8|16)|oauth-?2(?:\.0)?|x\.?509|[ial]\d\d?[nty]\b|k8s|s3|ec2|md5|b64|\dfa"
    r"|http[23]|ipv[46]|u?int\d+|float\d+|aes-?\d*|[hrep]s(?:256|384|512)|ed25519|p2p|m2m|e2e|win32|x86|(?:amd|arm)64|p12"
    r"|pbkdf2|argon2(?:id?|d)?|pkcs\d+|gpt-?\d\w?|v\d+(?:alpha|beta)\d*|(?-i:V\d+(?=[A-Z]))|es\d|py3|web3|log4j|n8n|mp[34]"
)
_PATH = (
    r"(?:[~.]{0,2}/|[A-Za-z]:[\\/]|\$\w+/|[\w.@-]+[/\\][\w.@+-]+[/\\]|[A-Za-z_.@-]+[/\\](?=[^0-9/\\]*$))"
    r"[\w.@+-]*(?:[/\\][\w.@+-]*)*$|[\w.-]+\.(?:[a-z]{1,4}|ya?ml|json5?|toml)$"
)
_CODE = (
    r"(?:await|new|lambda|function|async|not|self|this|return|typeof|yield)\b|[({\[<]|(?P<head>[&*!.@-]?[A-Za-z_$][\w$]*)"
    r"(?P<rest>(?:(?:\?\.|\.|->|::)(?!\d)[\w$]*)+(?:[(\[{<].*)?|[(\[{<].*)?$"
)
_PIECES = r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\x00-\x7f]+"
_DIGITS, _SYMBOLS = frozenset(string.digits), frozenset("!@#$%^&*?~")
_TELLING = r"(?i)passw|pwd|secret|token|credential|key|auth"


@functools.lru_cache(maxsize=1024)  # text that repeats itself asks the same thousands of times
def oddness(value: str, bare: bool = False) -> int:
    """How unlike words, code and placeholders it is: 0 no secret, 1 words, 2 words and digits, 3 odd, 4 random."""
    if len(value) < 3 or value.lower() in _PLAIN or (bare and _is_code(value, _mean(value))):
        return 0
    if (rest := _solid(value)) != value:
        odd = oddness(rest, bare)
        return odd if odd >= (4 if bare else 3) else 0
    if _re(_ID).match(value):
        return 0
    if " " in value:  # a pass phrase is no sentence
        words = value.lower().split()
        telling = any(_re(_TELLING).match(piece) for piece in _re(_PIECES).findall(value))
        if len(words) > 8 or not _PROSE.isdisjoint(words) or telling:
            return 0
        phrase = len(words) >= 4 and value.islower() and all(word.isalpha() for word in words)
        phrase |= re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+)* [A-Z][a-z]+ \d{2,}|(?:[A-Z][a-z]+ ){3,}\d", value) is not None
        return 1 if phrase else 2 if len(words) <= 4 and oddness("".join(words)) >= 3 else 0
    digits = not _DIGITS.isdisjoint(value)
    core = _re(_TECH).sub("", value) if digits else value
    mean = _mean(core)
    path = mean >= (2.3 if value[0] in "./~" else 2.9) and _re(_PATH).match(value) and not _gibberish(core)
    variable = value[0] == "$" and re.fullmatch(r"\$\w+" if mean >= 2.5 else r"\$[A-Z_]+", value)
    about = mean >= 2.9 and _re(_TELLING).search(core) and not (digits and any(c.isdigit() for c in core))
    return 0 if path or variable or about else _rank(core, value)


def _solid(value: str) -> str:
    """What stands in it beside placeholders: all of it, if there is none, and nothing, if it is one as a whole."""
    return "" if _re(_FAKE).search(value) else _re(_GAPS).sub("", value)


def _rank(core: str, value: str) -> int:
    """The same by the characters alone; `core` is the value without the digits of known terms."""
    mean, size = _mean(core), sum(map(str.isalnum, core))
    symbol, digit = not _SYMBOLS.isdisjoint(core), not _DIGITS.isdisjoint(core)
    if not any(map(str.isalpha, core)):
        return 1 if digit and (symbol or core.isdigit()) else 0
    if re.fullmatch(r"[0-9a-fA-F-]{24,}", value) and len(set(value)) > 7:
        return 4
    noise = size >= 8 and (mean <= 2 or (mean < 2.8 and size >= 16))
    noise |= (size >= 10 or mean < 3) and re.search("[A-Z]|[a-z]{8}", core) is not None and _gibberish(core)
    if not digit and not noise:  # words; with a symbol, very many or a very long one they are a pass phrase
        return 2 if symbol or re.fullmatch(r"[a-z]{18,}|[a-z]+(?:-[a-z]+){3,}", core) else 1
    if not (noise or symbol or mean < 2.9 or re.search(r"[A-Za-z]\+?[0-9]+[A-Za-z]", core)) or len(value) < 8:
        return 2
    random = mean < 2.8 or (digit and (noise or mean < (3.3 if len(value) < 32 else 4.5)))
    return 4 if random and len(value) >= 16 and len(set(value)) > 7 else 3


def _mean(core: str) -> float:
    """The mean length of its runs of capitals, of letters and of digits: about 2 if random, 4 and more in words."""
    pieces = _re(_PIECES).findall(core)
    return sum(map(len, pieces)) / len(pieces) if pieces else 0.0


def _gibberish(value: str) -> bool:
    """Letters that no language puts side by side so often."""
    low = value.lower()
    pairs = [run[i : i + 2] for run in re.findall(r"[a-z]{2,}", low) for i in range(len(run) - 1)]
    rare = sum(pair not in _BIGRAMS for pair in pairs) > 0.45 * len(pairs)
    return len(pairs) >= 4 and (rare or re.search(r"[b-df-hj-np-tv-xz]{6}", low) is not None)


def _is_code(value: str, mean: float) -> bool:
    """An expression rather than a literal: a call, an attribute, a name made of words."""
    match = _re(_CODE).match(value)
    if match is None or match["head"] is None:
        return match is not None
    head, rest = match["head"], match["rest"]
    if _re(r"[A-Z][a-z]+_\d{3,}\Z").match(value):
        return False
    if rest and "(" not in rest and "[" not in rest:
        return mean >= 2.9
    if rest:
        return mean >= 2.9 or rest == "(" or "_" in head or head.islower() or (head.isalpha() and len(head) > 3)
    return mean >= 2.9 and len(head) < 36 and ("_" in head or _re(_TELLING).search(head) is not None)


def _is_basic(value: str) -> bool:
    """Base64 of user:password."""
    raw = binascii.a2b_base64(value[: len(value) // 4 * 4])
    return b":" in raw and raw.isascii() and raw.decode("ascii").isprintable()


# ---- Where a value begins and ends -----------------------------------------------------------------------------------


class Value(NamedTuple):
    """Where a value stands in the text, without its quotes."""

    start: int
    end: int
    quoted: bool


_OPEN = (
    r"(?:(?:\w{0,20}Secret(?:Str|String)?|[Ss]tr(?:ing)?(?:::from)?|Some|bytes)\(|[(\[]\s{0,24})?[rRbBfFuU@$&]{0,2}(?P<esc>\\{0,7})"
    r"(?P<q>\"{3}|'{3}|[\"'`“‘„«「『]|&quot;|%22)"
)
_CLOSER = {"“": "”", "‘": "’", "„": "“", "«": "»", "「": "」", "『": "』"}
_SCHEME = r"(?i)(?:bearer|basic|token|digest|api-?key|key|bot|oauth|ssws|aws4-hmac-sha256)(?:[ \t]+|%20|=(?=\w))"
_BARE = (  # ends at white space; at a quote, an escape or a separator only where something else begins
    rf"(?:[^\s\"'`\\<,;&|\[{_SIGNS}]|\\(?![nrt\"'`\\]|u00(?:0|2[027]|3[ce]))|<(?!/)|\[(?!redacted:)|(?<=\w)[\"'`](?=\w)"
    r"|[,;&|](?![\s\"'`\\,;|]|$|quot;|[A-Za-z_][\w.-]{0,40}[=:])){1,200}"
)


def _read(text: str, pos: int) -> Value | None:
    """The value that begins at pos: a string without its quotes, or a bare word without trailing punctuation."""
    opened = _re(_OPEN).match(text, pos)
    start, end = (opened.end() if opened else pos), -1
    if opened:
        close = opened["esc"] + _CLOSER.get(opened["q"], opened["q"])  # escaped as often as the opening quote
        end = text.find(close, start, start + 8000)
        while end > start and text[end - 1] == "\\":
            end = text.find(close, end + 1, start + 8000)
        if end > start and opened["q"] == "«" and text[start] == text[end - 1] == " ":
            start, end = start + 1, end - 1
        if end >= 0 and opened["q"] in "\"'“‘„«「『" and text.find("\n", start, end) >= 0:
            end = -1  # not closed on its line
    quoted, unset = end >= 0, text.startswith("${", start) and _re(_UNSET).match(text, start)
    start = unset.end() if unset else start
    if scheme := _re(_SCHEME).match(text, start):
        start = scheme.end()
    if not quoted:
        bare = _re(_BARE, 0).match(text, start)
        end = start + len(bare.group().rstrip(".,;:)]}>")) if bare else start
    else:
        marker = text.find("[redacted:", start, end)
        end = marker if marker >= 0 else end
    if unset and (brace := text.find("}", start, end)) >= 0:
        end = brace
    return Value(start, end, quoted) if end > start else None


# ---- From a landmark to a finding ------------------------------------------------------------------------------------

_ESCAPED = r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|(?:\\x|%)[0-9a-fA-F]{2}|=3D|\x1b\[[0-9;]*m)\Z"
_TYPE = r"(?:&(?:'\w+ )?\w+|[A-Za-z_][\w.]{0,30}(?:[\[<][\w\[\]<>, .|?]{0,40}[\]>])?(?: ?\| ?\w{1,20}){0,3}\??)"
_META = r"(?:type|description|sensitive)[ \t]{1,20}=[^\n]{0,200}\n"  # of a variable, before its default
_FORM = (  # how a value is tied to a name; what is not one of these is prose
    rf"(?P<pair>(?=[\\\"'\s,{{-])\\{{0,3}}[\"']?,?(?:[\s{{-]|\\[nrt]|{_META}){{0,40}}\\{{0,3}}[\"']?(?i:value|default)\\{{0,3}}[\"']?\s{{0,3}}[:=]\s{{0,4}}"
    r"|\\?[\"'](?:\r?\n|(?:\\r)?\\n){2})"
    r"|(?P<args>\\{0,3}[\"'`]\s{0,4},\s{0,40}(?=[rbfu]?\\{0,3}[\"'`]))"
    r"|(?P<assign>(?:\\{0,3}[\"'`]|&quot;|%22|\*\*|\]|\)|\[\d*\]|[?!]){0,4}(?: \d\d?(?=:))?[ \t]{0,10}"
    r"(?:(?::[ \t]*" + _TYPE + r"|(?i:\w{0,12}str(?:ing)?|char|text))(?=[ \t]*=[ \t]*\\?[\"'`]))?"
    r"(?P<op>[ \t]*(?:<-|:=|=>|===?|!==?|=|:(?!:)|[：是为為はをが는]|(?=[「『«])|%3[AD]"
    r"|(?<=[ \t])(?:->|[→—–-])(?=[ \t])|(?<=[\w)][ \t])(?:\|\||\?\?|or)(?=[ \t]+[\"'])))"
    r"(?:\*\*|__|</\w+>)?[ \t]{0,10}(?:<(?:b|code|strong|em|i|kbd|tt|pre|span)>)?)"
    r"|(?P<xml>(?:</\w{1,20}>\s{0,40}<\w{1,20}|\\?[\"']?(?:\s[^<>\n]{0,80})?)>\s{0,40}(?=[^<\s]))"
    r"|(?P<table>[ \t*`]{0,6}\|[ \t]{0,20})"
)
_LINK = (
    r"(?i)(?:(?:\b(?:is|was|to|as|be|are|ist|lautet|heißt|auf|c['’]est|est|es)|(?<=[ \t])(?:[èé]|är))"
    r"(?:\s+(?:now|still|just|set to))?[ \t]*:?|[:=]|—|–)(?:[ \t]+(?:\*\*)?|(?<=:)(?=\r?\n))"
)
_SET = r"(?i)\s*(?:re)?set to\b\W*"
_GAP = r"(?:['’]s|[\"'`)*]{0,3})[ \t]+(?:\((?=\S))?"
_NEXT = r"(?:[|>][+-]?)?[ \t]*(?:\r?\n|\\n)(?:[\s>]|- |\\n|```\w{0,12}){0,40}"  # on to the next line
_BEHIND = {
    "xml": r"[.,;:)\]}>]{0,4}\s{0,40}<",
    "table": r"[^\w|\n]{0,6}(?:\||\n|$)",
}  # what has to stand behind the value
_ALONE = r"[\"'`]{0,3}[ \t]*(?:\r?\n|\\n|\\?\"|$)"
_PLURAL, _OPENLY = "s(?![a-z])|S(?![A-Z])", "(?i)pub(?:lic|[_-]?key)"
_UUID = r"\W{1,8}[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
_NESTED = r"[\w-]{0,20}(?i:passw|pwd|secret|token|key|auth)[\w-]{0,20}=(?=[\w\"'\[])"
_MIXED = r"(?!.*-[0-9a-f]{32,}$)(?=.*[A-Z])(?=.*[a-z])(?=.*\d)[\w+/-]+={0,2}$"
_MORE = r"[\"'],\s{0,24}[\"'](?P<v>[^\"'\s]{6,200})(?=[\"'])"  # of a list
_WRAP = (  # the rest of a secret, alone in the next line
    r"[ \t│|\\\"'+]{0,8}(?:\r?\n|\\n)[ \t│|>\"'+-]{0,24}"
    r"(?P<v>(?=[\w+/-]{0,200}[A-Z])(?=[\w+/-]{0,200}[a-z])[\w+/-]{8,200}={0,2})"
    r"(?=[ \t│|\\\"'+,;)]{0,8}(?:[\r\n]|\\n|$))"
)
_NAME_CHARS = string.ascii_letters + string.digits + "_-."


@functools.cache
def _re(pattern: str, flags: int = re.ASCII) -> re.Pattern[str]:
    """A pattern, compiled at its first use: importing this module stays cheap."""
    return re.compile(pattern, flags)


def _glued(text: str, pos: int) -> bool:
    """The character before pos belongs to the same word; an escape sequence does not."""
    before = text[pos - 1 : pos] if pos else ""
    if before in ("+", "/"):  # in the middle of base64
        return _re(r"[A-Za-z0-9+/]{40}").match(text, max(0, pos - 40), pos) is not None
    return before.isascii() and before.isalnum() and not _re(_ESCAPED).search(text, max(0, pos - 8), pos)


def _judge_key(text: str, pos: int, floor: int) -> tuple[Finding | None, int]:
    """A secret with a shape at pos, and where to go on looking. `floor` is where the secret before it ends."""
    begun = _re(_MARKS).match(text, pos) and (pos == floor or not _glued(text, pos))
    match = _re(_KEYS).match(text, pos) if begun else None
    if match:
        row, body = KEYS[int(str(match.lastgroup)[1:])], match.group((match.lastindex or 0) + 1)
    elif inner := _re(_INNER).match(text, pos):
        row = KEYS[int(str(inner.lastgroup)[1:])]
        matches = _re(row.back + row.mark + row.body).finditer(text, max(floor, pos - 100), pos + 400)
        match = next((one for one in matches if one.start() <= pos < one.end()), None)
        body = match.group() if match and (match.start() == floor or not _glued(text, match.start())) else ""
    if match is None or not body:
        return None, pos + 1
    start, end = match.span()
    if row.rule == "private-key":
        if "END " in row.mark:
            return _judge_end(text, pos, floor), end
        real = 2 * sum(map(len, re.findall(r"[A-Za-z0-9+/=]{16,}", body))) > len(body)
        return (Finding(row.rule, start, end), end) if real else (None, pos + 1)
    whole, body = match.group()[:100], body[:100]
    solid = _solid(whole)
    if (
        len(set(body)) < 6
        or (solid != whole and _rank(solid, solid) < 4)
        or (row.mixed and max(_rank(body, body), _rank(whole, whole)) < 3)
    ):
        return None, end
    rest = _re(r"(?:[\w-]|\.(?=\w\w))*").match(text, end)
    end = _wrapped(text, rest.end() if rest else end)
    return Finding(row.rule, start, end), end


def _judge_end(text: str, pos: int, floor: int) -> Finding | None:
    """The lines of a private key before its END at pos, where no BEGIN is left."""
    begin, low = pos, max(floor, pos - 16000)
    other = text.rfind("----", low, pos)
    low = other + 4 if other >= 0 else low
    for line in reversed(list(_re(r"(?:[^\n\\]|\\(?!n))+").finditer(text, low, pos))):
        size = 40 if begin < pos else 4  # the last one may be short
        row = _re(rf"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{{{size},}}={{0,2}}\W*\Z").search(text, line.start(), line.end())
        if row is None and line.end() < pos and re.search(r"\w", line.group()):
            break
        begin = row.start() if row else begin
    return Finding("private-key", begin, pos) if pos - begin > 40 else None


def _wrapped(text: str, end: int) -> int:
    """Where a secret ends that goes on in the next lines."""
    while (more := _re(_WRAP).match(text, end)) and _rank(more["v"], more["v"]) > 2:
        end = more.end("v")
    return end


def _accept(text: str, rule: str, value: Value | None, need: int, short: int = 3) -> Finding | None:
    """The value as a finding, if it is odd enough; a key inside gives it the better name."""
    if value is None or value.end - value.start < short:
        return None
    start, end = value.start, value.end
    found = text[start : min(end, start + 100)]
    number = rule == "password" and found.isdigit() and len(found) > 5
    if oddness(found, bare=not value.quoted) < need - number or (rule == "key" and not _re(_MIXED).match(found)):
        return None
    while not value.quoted and end - start >= 200 and (more := _re(_BARE, 0).match(text, end)):
        end = more.end()
    end = _wrapped(text, end) if end - start > 15 else end
    key, key_end = _judge_key(text, start, start)
    return Finding(key.rule, start, max(end, key_end)) if key else Finding(rule, start, end)


def _judge_place(text: str, pos: int, floor: int) -> Finding | None:
    """What stands in a place for secrets."""
    low = max(0, pos - 300)
    begin = max(floor, low)
    if _re(_AT).match(text, pos):  # of many signs in one stretch of text only the first few can end a password
        space = _re(r"(?s).*[\s\"'<>`]").match(text, begin, pos + 1)
        begin = space.end() if space else begin
        if text.find(":", begin, pos) < 0 or text.count("@", begin, pos) > 4:
            return None
    for place in PLACES if _re(_STANDS).match(text, pos) else ():
        if not _re(place.mark).match(text, pos):
            continue
        leads = _re(place.lead).finditer(text, begin, pos + 1) if place.lead else ()
        starts = [lead.start() for lead in leads] if place.lead else [pos]
        matches = (_re(place.find).match(text, start) for start in starts)
        match = next((one for one in matches if one and one.end() > pos), None)
        if match is None or (place.line and not re.search(place.line, text[low:pos].rpartition("\n")[2])):
            continue
        start, end = match.span("v")
        if place.need < 0:
            finding = Finding(place.rule, start, end) if _is_basic(match["v"]) else None
        else:
            value = Value(start, end, True) if end > start else _read(text, start)
            finding = _accept(text, place.rule, value, place.need)
        if finding:
            return finding
    return None


def _name(text: str, pos: int) -> tuple[Word, int, int, int] | None:
    """The telling word at pos, where its name begins and ends, and how much odder the value of such a name has to be;
    None if it tells of something else: tokenizer, next_token, password_hint."""
    match = _re(_WORDS).match(text, pos)
    if match is None:
        return None
    word = WORDS[int(str(match.lastgroup)[1:])]
    begin, end = match.span()
    begin += not text[begin].isalnum()
    low = max(0, begin - 40)
    start = low + len(text[low:begin].rstrip(_NAME_CHARS))
    if start < begin and text[start - 1 : start] == "\\":
        start += 1  # the letter of an escape: \nTOKEN=
    before, tail = text[start:begin], text[end : end + 40]
    tail = tail[: len(tail) - len(tail.lstrip(_NAME_CHARS))].rstrip("-.")
    extra = 0
    if tail:
        longer = tail[0].isalpha() and not (tail[0].isupper() and text[end - 1].islower())
        if (longer and not _re(_PLURAL).match(tail)) or tail[:2] == "--" or _re(_TELLING).search(tail):
            return None
        after = [piece.lower() for piece in _re(_PIECES).findall(tail)]
        if not _ABOUT.isdisjoint(after):
            return None
        extra = 0 if all(piece.isdigit() or piece in _NEUTRAL for piece in after) else 1
    if text[max(0, start - 2) : start] == "::":
        return None
    if word.rule != "password" and match.group()[-6:].lower() != "secret":  # which are never public
        previous = _re(_PIECES).findall(before) or text[max(0, start - 16) : start].rpartition("\n")[2].split()
        last = previous[-1].lower() if previous else ""
        public = last in _PUBLIC or before.strip("_-.").lower() in _PUBLIC  # S3Key is S, 3 and Key
        if last in ("client", "request", "change", "lock") and _re(_UUID).match(text, end):
            return None  # made up for one call
        if _re(_OPENLY).search(text, start, end) or (public and not text[start:end].isupper()):
            return None
        extra += 4 - word.tight if public else 0  # SYNC_TOKEN=, of a configuration
    return word, start, end + len(tail), extra


def _judge_word(text: str, pos: int) -> tuple[Finding | None, int]:
    """What a telling name at pos is tied to, and where to go on looking."""
    name = _name(text, pos)
    if name is None:
        return None, pos + 1
    return _judge_tie(text, *name), name[2] if text[pos].isalnum() else pos + 1


def _judge_tie(text: str, word: Word, start: int, end: int, extra: int) -> Finding | None:
    """name = value and its like; what is tied in no such way is prose."""
    form = _re(_FORM).match(text, end)
    kind, lead = form.lastgroup if form else "", text[max(0, start - 6) : start]
    if form is None or (kind == "xml" and not lead.endswith(("<", ":", "/", ">", '"', "'"))):
        return _judge_prose(text, word, start, end, extra)
    at, tie, op = form.end(), text[end : form.end()], form["op"] or ""
    fold = _re(_NEXT).match(text, at) if op == ":" and word.loose < NEVER else None
    nested = text.find("=", at, at + 44) >= 0 and _re(_NESTED).match(text, at)
    value = None if nested else _read(text, fold.end() if fold else at)
    if value is None or (lead.endswith((":", "/", "${")) and tie == ":"):  # arn:aws:secret:name
        return None
    need = word.quoted if value.quoted else word.bare
    if kind == "xml" or (
        tie == "=" and (text[start].isupper() or text[start] == "-" or lead.endswith((";", "&", "?")))
    ):
        need = word.tight
    elif kind == "args":
        called = lead.rstrip("\"'`\\ #.")[-1:] == "(" or text[start] == "-"
        need = max(word.quoted, 1 if text[start:end].isupper() else 2) if called else NEVER
    elif fold or "==" in op or "!=" in op or text[at] in "([":
        need = max(need, 3)
    if kind in _BEHIND or fold:
        behind = _re(_BEHIND.get(str(kind), _ALONE)).match(text, value.end)
        first = not lead.rpartition("\n")[2].strip(" *`")  # of its line
        if not behind or (kind == "table" and (not (first or lead.rstrip(" *`")[-1:] == "|") or _heads(text, at))):
            return None
    finding = _accept(text, word.rule, value, need + extra, word.short)
    while finding and text[at] == "[" and (more := _re(_MORE).match(text, finding.end)):
        if oddness(more["v"][:100]) < need:
            break
        finding = Finding(finding.rule, finding.start, more.end("v"))
    return finding


def _judge_prose(text: str, word: Word, start: int, end: int, extra: int) -> Finding | None:
    """--name value, NAME value, the name for something is value."""
    label = text[start:end]
    flag = label.startswith("-") or ("_" in label and label.isupper())
    if (word.loose == NEVER and not flag) or text[start - 1 : start] in ("$", "{"):
        return None
    gap = _re(_GAP).match(text, end)
    if gap is None:
        return None
    value, short = _read(text, gap.end()), max(6, word.short)
    if value and value.quoted:
        need = word.quoted if flag else max(2, word.quoted)
    else:
        need = max(2, word.tight) if flag else word.loose + 1
    need = max(need, 4) if not flag and _re("_|[a-z][A-Z]").search(label) else need
    if finding := _accept(text, word.rule, value, need + extra, short):
        return finding
    for link in itertools.islice(_re(_LINK).finditer(text, end, end + 96), 4):
        between = text[end : link.start()]
        about = not _ABOUT.isdisjoint(between.lower().split()[:1]) and not re.fullmatch(_SET, between + link.group())
        if about or re.search(r"\n|\. |\[redacted:", between):
            return None
        fold = _re(_NEXT).match(text, link.end()) if link.group().rstrip()[-1:] == ":" else None
        value = _read(text, fold.end() if fold else link.end())
        if fold and value and not _re(_ALONE).match(text, value.end):
            return None
        need = 3 if fold else min(word.loose, 3) if flag else word.loose
        need -= bool(value and value.quoted and need > 1)
        if finding := _accept(text, word.rule, value, need + extra, short):
            return finding
    return None


# ---- Below what tells ------------------------------------------------------------------------------------------------

_MANIFEST, _VALUES = r"kind\W{1,4}Secret[^\w-]", r"\)\s{0,8}(?i:values)\s{0,8}\("
_BELOW = (  # what cannot be the head of anything is left soon
    rf"{_MANIFEST}|{_VALUES}|[^\s:=,;|()]{{2,40}}(?: \w{{1,12}})?[ \t]{{0,20}}(?:[|\t\r\n]|[,;][\w\"]|  )"
)
_RULED = r"[-=:+| \t]*[-=]{2}[-=:+| \t]*\r?"  # the line between the head of a table and its rows
_HEAD = (  # names alone, and what stands between them
    r"[ \t>]*+[\"'*`]*+[A-Za-z_][\w.()\"'*`/-]*+(?: [\w*`]++){0,3}+"
    r"(?:(?P<sep>[,;\t]| {2,})[\"']?\w[\w .()\"'/,;\t-]*)?[ \t]*+\r?"
)
_TUPLE = r"(\((?:'[^'\n]*'|[^()']|\([^()']*\))*+)\)[,\s]*"
_OTHER = r"\n---|\n(?:- )?apiVersion|\},?\s{0,80}\{\s{0,80}\\?\"apiVersion|kind: "  # where the next manifest begins
_DATA = r"(?:stringData|data)\\{0,3}[\"']?:[ \t]*(?:\{|\r?\n)"
_ENTRY = r"[\w./-]+(?:\\{0,3}[\"'])?:[ \t]*(?:[|>][+-]?\s+(?=[^\s:]+\s)|\\{0,3}[\"'])?(?P<v>[^\s\"'\\|>{}]{4,})"


class Column(NamedTuple):
    """Of a table, with a telling name."""

    word: Word
    need: int  # the least `oddness` of a cell
    find: str  # matches a row; group v is the cell
    at: int  # where in the row to begin


def _columns(text: str, start: int, end: int, sep: str, quote: str = '"') -> list[Column]:
    """The columns that tell, by the row of names between start and end."""
    parts = _re(r"\S+(?: \S+)*|\s+").findall(text[start:end]) if sep == " " else text[start:end].split(sep)
    cell, found, at = rf"(?:{quote}[^{quote}\n]*{quote}|[^{sep}])*+", [], start
    for number, part in enumerate(parts):
        head = _trim(text, at, at + len(part))
        names = [_name(text, word.start()) for word in _re(_WITHIN).finditer(text, head.start, head.end)]
        for word, _, last, extra in filter(None, names):
            find = r"(?<!\S)(?P<v>\S+(?: \S+)*)" if sep == " " else r"(?P<v>[ \t>*`\"']*\S+)\s*\Z"
            if sep not in " \n":
                rest = rf"(?:[{sep}]{cell}){{{len(parts) - 1 - number}}}\Z" if sep != "|" else "[|]" * (number == 0)
                find = rf"(?:{cell}[{sep}]){{{number}}}(?P<v>{cell})" + rest
            if last >= head.end and word.rule != "key":
                need = word.bare + (sep == "\n") if word.rule == "password" else 4  # "token" heads many a column
                found.append(Column(word, need + extra, find, at - start if sep == " " else 0))
        at += len(part) + (sep != " ")
    return found


def _trim(text: str, start: int, end: int) -> Value:
    """A cell without what surrounds its text."""
    inner = text[start:end].strip(" \t\r>*`\"'")
    start = text.find(inner, start, end)
    return Value(start, start + len(inner), False)


def _judge_row(text: str, columns: list[Column], start: int, end: int) -> list[Finding | None]:
    """What the cells of a row are; empty if it is no row of this table."""
    cells = [(one, _re(one.find).match(text, start + one.at, end)) for one in columns]
    return [
        _accept(text, one.word.rule, _trim(text, *cell.span("v")), one.need, one.word.short)
        for one, cell in cells
        if cell
    ]


def _next_line(text: str, pos: int) -> tuple[int, int]:
    """Where the line after the one at pos begins and ends."""
    start = text.find("\n", pos, pos + 600) + 1 or len(text)
    end = text.find("\n", start)
    return start, end if end >= 0 else len(text)


def _heads(text: str, pos: int) -> bool:
    """Whether the line at pos is the head of a table: the next one is ruled."""
    return _re(_RULED).fullmatch(text, *_next_line(text, pos)) is not None


def _judge_below(text: str, pos: int, done: int) -> tuple[list[Finding | None], int]:
    """Secrets below what tells of them: in a table, an INSERT, a manifest of Kubernetes. And where these end."""
    if _re(_MANIFEST).match(text, pos):
        return _judge_manifest(text, pos, done)
    found: list[Finding | None] = []
    if values := _re(_VALUES).match(text, pos):
        start, at = text.rfind("(", max(done, pos - 600), pos) + 1, values.end() - 1
        columns = _columns(text, start, pos, ",", "'") if start else []
        while columns and (group := _re(_TUPLE).match(text, at)):
            found += _judge_row(text, columns, at + 1, group.end(1))
            at = group.end()
        return found, at
    start, end = text.rfind("\n", max(0, pos - 600), pos) + 1, text.find("\n", pos, pos + 600)
    if end < 0 or start < max(done, pos - 599):
        return found, done
    at, stop = _next_line(text, end)
    piped = text.find("|", start, end) >= 0
    names = None if piped else _re(_HEAD).fullmatch(text, start, end)
    if not (_heads(text, end) if piped else names):
        return found, done
    sep = "|" if names is None else (names["sep"] or "\n")[0]  # a name alone in its line has one cell
    columns = _columns(text, start, end, sep)
    while columns and at < len(text):
        if not _re(_RULED).fullmatch(text, at, stop):
            row = _judge_row(text, columns, at, stop)
            if not row and (sep != " " or at == stop):
                break
            found += row
            if sep == "\n":
                break
        at, stop = _next_line(text, stop)
    return found, max(done, at if found else start)


def _judge_manifest(text: str, pos: int, done: int) -> tuple[list[Finding | None], int]:
    """The data of a Secret, in YAML or JSON."""
    begin, end = text.rfind("apiVersion", max(done, pos - 8000), pos), min(len(text), pos + 8000)
    begin = begin if begin >= 0 else pos
    other = _re(_OTHER).search(text, pos + 4, end)
    end, reach, found = other.start() if other else end, begin, []
    for data in _re(_DATA).finditer(text, begin, end):
        if data.start() < reach:
            continue
        need = 1 if text[data.start()] == "d" else 2  # base64, and as it is
        depth = data.start() - text.rfind("\n", begin, data.start())
        close = r"\}" if data.group()[-1] == "{" else rf"\n[^A-Za-z\n]{{0,{depth - 1}}}[A-Za-z]"
        last = re.compile(close).search(text, data.end() - 1, end)
        for entry in _re(_ENTRY).finditer(text, data.end() - 1, last.start() if last else end):
            found.append(_accept(text, "secret", Value(*entry.span("v"), True), need))
            reach = entry.end()
    return found, end


# ---- The engine ------------------------------------------------------------------------------------------------------


def _any(marks: Iterable[str]) -> str:
    """One of the marks; those that begin with the same letter stand together, so that `re` tries few of them."""
    groups: dict[str, list[str]] = {}
    for mark in marks:
        first = mark[0] if mark[0].isalnum() else ""
        groups.setdefault(first, []).append(mark[len(first) :])
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in groups.items())


_KEYS = "|".join(f"(?P<k{i}>{row.mark}({row.body}))" for i, row in enumerate(KEYS) if not row.back)
_MARKS = _any(row.mark for row in KEYS if not row.back)
_INNER = "|".join(f"(?P<k{i}>{row.mark}{row.body})" for i, row in enumerate(KEYS) if row.back)
_STANDS = _any(row.mark for row in PLACES)
_SHAPED = _any([row.mark for row in KEYS] + [row.mark for row in PLACES])
_WORDS = "|".join(f"(?P<w{i}>(?i:{word.words}))" for i, word in enumerate(WORDS))
_WITHIN = f"(?={_WORDS})"  # one may begin inside of another
_FOLLOW_KEY = r"s?(?:[_.\-0-9][\w.\-]{0,24})?[\\\"'`*\]]{0,6}(?:\s*[:=,>]{1,2}|\s+value:)\s*[\\\"'`]{0,4}[\w+/\-]{6}"
_FOLLOW = (  # what has to follow a telling word before Python looks; `_FORM` and `_LINK` say it more exactly
    r"s?(?:(?:[_.\-0-9]|(?-i:[A-Z]))[\w.\-]{0,24})?(?:(?:[\\\"'`*\])\[?!0-9]|&quot;|%22){0,6}(?:[ \t][0-9]{1,2})?[ \t]*"
    r"(?:[:=|]|\?\?|or[ \t]+[\"']|<-|!=|->|→|—|–|-[ \t]|：|是|为|為|は|を|が|는|「|『|«|%3[AD]"
    r"|(?:str|char|text)\w*[ \t]+=)"
    r"|[\\\"'`]{1,4}(?:\s*,|(?:[\r\n]|\\[rn]){2})|\"?(?:[,;\t][\w\"]|\x20{2,}\w)"
    rf"|[\\\"'`]{{0,4}},?(?:[\s{{-]|\\[nrt]|{_META})*[\\\"']{{0,4}}(?:value|default)"
    r"|(?:</\w+>\s*<\w+|[\\\"']{0,2}(?:\s\w+=[\"'][^\"'<>\n]*[\"'])?)>|(?:'|’)s[ \t]|[\"'`)*]{0,3}[ \t]+(?:[\"'`(]"
    r"|(?:is|was|to|as|be|are|for|of|on|in|at|from|i|we|you|that|ist|lautet|heißt|auf|für|est|es|c['’]est|du|del?|от|är|è|é"
    r"|(?:re)?set|changed)[\s:]"
    r"|[a-z]+-[a-z]+-[a-z]+-[a-z]|\S{0,32}(?:[0-9@$!#%&*^]|\S(?-i:[A-Z]))))"
)


@functools.cache
def fingerprint() -> str:
    """Of every table and pattern above: another one, and what is stored was judged by other rules."""
    tables = {name: value for name, value in globals().items() if name.strip("_").isupper()}
    told = [(name, sorted(each) if isinstance(each, frozenset) else each) for name, each in sorted(tables.items())]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


@functools.cache
def _landmark() -> Any:
    """All marks as one RE2."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are bytes, whatever they encode
    options.never_capture, options.log_errors, options.max_mem = True, False, 96 << 20
    plain = "|".join(row.mark for row in KEYS if not row.back and " " not in row.mark)
    words = "|".join(word.words for word in WORDS if word.rule != "key")
    keys = "|".join(word.words for word in WORDS if word.rule == "key")
    marks = [row.mark for row in KEYS if row.back or " " in row.mark] + [*{row.mark: 0 for row in PLACES}]
    marks += [
        _MANIFEST,
        _VALUES,
        rf"(?i:{WORDS[0].words}|{WORDS[1].words})[ \t\"*`]*\r?\n",
        r"KEY[ \t]+[\w+/\-]{6}",
        rf"(?:{plain})[\w.+/%=~$-]{{10}}",
        f"(?i:(?:{words}){_FOLLOW}|(?:{keys}){_FOLLOW_KEY})",
    ]
    return re2.compile("|".join(marks).encode(), options)


_UNSEEN = "\xa0\xad\u200b\u200c\u200d\u2060\ufeff"
_NOISE = rf"(?:\x1b|\\u001b)\[[0-9;]*[mK]|[{_UNSEEN[1:]}]"  # colours, and signs without a width


def scan(text: str) -> list[Finding]:
    """The secrets in a text, sorted, none overlapping another."""
    found = _find(text)
    escaped = "\x1b" in text or ("\\" in text and "\\u001b[" in text)
    if escaped or (not text.isascii() and any(map(text.__contains__, _UNSEEN))):
        found += _find_below(text)
    if not found:
        return found
    merged: list[Finding] = []
    for finding in sorted(found, key=lambda one: one.start):
        if merged and finding.start < merged[-1].end:
            finding = Finding(merged[-1].rule, merged[-1].start, max(merged.pop().end, finding.end))
        merged.append(finding)
    return merged


def _find_below(text: str) -> list[Finding]:
    """What is found once the signs are gone that nobody sees."""
    parts, starts, gone, at = [], [0], [0], 0
    for noise in [*_re(_NOISE).finditer(text)]:
        parts.append(text[at : noise.start()])
        at = noise.end()
        gone.append(gone[-1] + at - noise.start())
        starts.append(at - gone[-1])
    plain = ("".join(parts) + text[at:]).replace("\xa0", " ")
    found = []
    for one in _find(plain):
        start, last = (pos + gone[bisect.bisect_right(starts, pos) - 1] for pos in (one.start, one.end - 1))
        found.append(Finding(one.rule, start, last + 1))
    return found


def _find(text: str) -> list[Finding]:
    """The findings of one reading; a later one may overlap an earlier."""
    data = text.encode("utf-8", "surrogatepass")
    search = _landmark().search
    hit = search(data)
    if hit is None:
        return []
    narrow = len(data) == len(text)  # ASCII: a byte is a character
    found: list[Finding] = []
    below: list[Finding] = []
    byte = char = done = 0
    while hit is not None:
        start = hit.start()
        while data[start] & 0xC0 == 0x80:
            start -= 1  # a mark may begin with any byte: back to where its character begins
        char += start - byte if narrow else len(data[byte:start].decode("utf-8", "surrogatepass"))
        opened = text.rfind("[redacted:", max(0, char - 30), char + 1)
        marker = _re(r"\[redacted:[a-z0-9-]{1,18}\]").match(text, opened) if opened >= 0 else None
        if marker and marker.end() > char:
            resume = marker.end()
        elif found and found[-1].start <= char < found[-1].end:
            resume = found[-1].end
        else:
            floor = found[-1].end if found else 0
            finding, resume = None, char + 1
            if _re(_SHAPED).match(text, char):
                finding, resume = _judge_key(text, char, floor)
                if not finding and resume == char + 1:
                    finding = _judge_place(text, char, floor)
            if not finding and resume == char + 1:
                finding, resume = _judge_word(text, char)
            if not finding and char >= done and _re(_BELOW).match(text, char):
                cells, done = _judge_below(text, char, done)
                below += [cell for cell in cells if cell]
            if finding and found and finding.start < found[-1].end and finding.end > found[-1].start:
                last = found.pop()  # one run, which is left behind as a whole
                rule = last.rule if last.start <= finding.start else finding.rule
                finding = Finding(rule, min(last.start, finding.start), max(last.end, finding.end))
            found += [finding] if finding else []
        byte = start + (resume - char if narrow else len(text[char:resume].encode("utf-8", "surrogatepass")))
        char = resume
        hit = search(data, byte)
    return found + below


_PASSES = 6  # no text that a person wrote has needed more than three


def redact(text: str) -> str:
    """The text with a marker in place of every secret; the same object if there is none.

    A marker may bring to light what stands beside it. Text made to do so over and over loses more in every pass, so
    that the number of passes grows only with the logarithm of its length.
    """
    passes = 0
    while found := scan(text):  # ends: every pass turns text into markers, and no finding lies in a marker
        passes += 1
        more = 1 << passes if passes > _PASSES else 0
        parts, at = [], 0
        for finding in found:
            parts += [text[at : max(at, finding.start - more)], f"[redacted:{finding.rule}]"]
            at = max(at, finding.end + more)
        text = "".join(parts) + text[at:]
    return text
